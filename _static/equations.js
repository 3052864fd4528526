// An equation that is wider than the screen scrolls in its own box: the keyboard must reach it too.
window.addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  const stops = () => {
    for (const box of document.querySelectorAll('mjx-container[display="true"]')) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  };
  window.addEventListener("resize", stops);
  stops();
});
