// Part of language_data.js (see book_search.py); searchtools.js has been read before it.
var foldQuery = (text) => text.normalize("NFKC").replace(/(?<=[ァ-ヺー][ァ-ヺ])ー(?![ァ-ヺー])/g, "");

var splitQuery = (query) => {
  const token = /([々〆〇ぁ-ゟ゠-ヿ㐀-䶿一-鿿]+)|((?:(?![々〆〇ぁ-ゟ゠-ヿ㐀-䶿一-鿿])[\p{L}\p{N}_])+)/gu;
  const pairs = (run) => Array.from({ length: run.length - 1 }, (_, i) => run.slice(i, i + 2));
  return [...foldQuery(query).matchAll(token)].flatMap(([, run, word]) =>
    word ? [word] : run.length === 1 ? [run] : pairs(run)
  );
};

// Sphinx's Japanese lacks these two, or says them at length.
Object.assign(Documentation.TRANSLATIONS, {
  "Search finished, found ${resultCount} page(s) matching the search query.":
    "${resultCount} か所で見つかりました。",
  "Your search did not match any documents. Please make sure that all words are spelled correctly and that you've selected enough categories.":
    "見つかりませんでした。短い語に分けるか、別の書き方で試してください。",
});

// Previews are fetched, which a browser refuses for files.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

if (typeof Search !== "undefined") {
  const { _parseQuery, _performSearch, makeSearchSummary } = Search;
  let words = new Set();

  // Highlight what was typed, not each pair of characters.
  Search._parseQuery = (query) => {
    const [, terms, excluded] = _parseQuery(foldQuery(query));
    words = new Set(query.toLowerCase().trim().split(/\s+/));
    localStorage.setItem("sphinx_highlight_terms", [...words].join(" "));
    return [foldQuery(query), terms, excluded, words, words];
  };

  // Where the index says that a term is introduced, then headings, then text; of equals, the
  // chapters in the book's order, then all other pages. (Sphinx puts the index last.)
  const isChapter = (page) => /\/\d\d_/.test(page);
  const worse = ([page, , , , score], [other, , , , otherScore]) =>
    score - otherScore || isChapter(page) - isChapter(other) || (page < other ? 1 : -1);
  const introduced = (query) => {
    const { docnames, filenames, indexentries, titles } = Search._index;
    const plain = (text) => foldQuery(text).toLowerCase().replace(/[\s\u2010-\u2015-]/g, "");
    const places = Object.entries(indexentries).filter(([term]) => plain(term) === plain(query));
    return places.flatMap(([, found]) =>
      found.map(([page, id]) => [docnames[page], titles[page], `#${id}`, null, 100, filenames[page]])
    );
  };

  // A page with a hit in a heading or the index is not listed again as a whole.
  Search._performSearch = (query, ...rest) => {
    const results = [...introduced(query), ..._performSearch(query, ...rest)];
    const placed = new Set(results.filter(([, , anchor]) => anchor).map(([page]) => page));
    const kept = results.filter(([page, , anchor]) => anchor || !placed.has(page));
    const weighed = kept.map(([page, title, anchor, text, score, file]) =>
      [page, title, anchor, text, score > 20 || isChapter(page) ? score : score / 2, file]
    );
    const seen = new Set();
    const first = ([, , anchor, , , file]) => !seen.has(file + anchor) && seen.add(file + anchor);
    return weighed.sort(worse).reverse().filter(first).reverse();
  };

  // Every term must be on the page; pages with the terms in their headings come first.
  Search.performTermsSearch = (terms) => {
    const index = Search._index;
    const pages = (table, term) => {
      const own = Object.hasOwn(table, term) ? [table[term]] : [];
      const latin = /^[\p{Script=Latin}\p{Script=Greek}]{3,}/u.test(term);
      const longer = latin ? Object.keys(table).filter((t) => t.startsWith(term) && t !== term) : [];
      return new Set([own, longer.map((t) => table[t])].flat(Infinity));
    };
    const found = [...terms].map((term) => ({
      body: pages(index.terms, term),
      title: pages(index.titleterms, term),
    }));
    if (!found.length) return [];
    return index.docnames.flatMap((name, page) => {
      if (!found.every(({ body, title }) => body.has(page) || title.has(page))) return [];
      const titled = found.filter(({ title }) => title.has(page)).length / found.length;
      return [[name, index.titles[page], "", null, 5 + 10 * titled, index.filenames[page]]];
    });
  };

  // Previews come from the text around the hit, without code and buttons.
  Search.htmlToText = (html, anchor) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    page.querySelectorAll(".headerlink, .cell_input, script, style, svg").forEach((e) => e.remove());
    const place = anchor ? page.getElementById(anchor.slice(1)) : null;
    return (place?.closest("p, li, td, section") ?? page.querySelector("article"))?.textContent ?? "";
  };
  Search.makeSearchSummary = (html, terms, anchor) =>
    makeSearchSummary(html, words, anchor) ?? document.createElement("p");
}

// The theme reads searchtools.js on every page, which Sphinx takes for the search page.
document.addEventListener("DOMContentLoaded", () => {
  const onSearchPage = document.getElementById("search-results");
  if (!onSearchPage && typeof SphinxHighlight !== "undefined") SphinxHighlight.highlightSearchWords();
});
