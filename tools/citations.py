"""Entries of references.bib as text: short for a citation, full for a list of references."""

import re
from pathlib import Path

from pybtex.database import Entry, Person, parse_file

from tools.myst import is_wide


def load(path: Path) -> dict[str, Entry]:
    return dict(parse_file(str(path)).entries) if path.exists() else {}


def plain(text: str) -> str:
    return re.sub(r"[{}]", "", text).replace("\\&", "&")


def people(entry: Entry) -> list[Person]:
    return entry.persons.get("author") or entry.persons.get("editor") or []


def surname(person: Person) -> str:
    return plain(" ".join([*person.prelast_names, *person.last_names]))


def whole_name(person: Person) -> str:
    first, last = person.first_names + person.middle_names, person.prelast_names + person.last_names
    name = plain(" ".join(first + last + person.lineage_names))
    return "et al." if name == "others" else name


def short(entry: Entry) -> str:
    names = [surname(person) for person in people(entry)]
    if is_wide(names[0][:1]):
        return names[0] + ("ほか" if len(names) > 1 else "")
    return f"{names[0]} et al." if len(names) > 2 else " and ".join(names)


def dated(entry: Entry) -> str:
    return f"{short(entry)}, {entry.fields['year']}"


def order(entry: Entry) -> tuple[str, str]:
    return short(entry).casefold(), entry.fields["year"]


def link(entry: Entry) -> str:
    if entry.fields.get("archiveprefix", "").lower() == "arxiv":
        return "https://arxiv.org/abs/" + entry.fields["eprint"]
    if "doi" in entry.fields:
        return "https://doi.org/" + entry.fields["doi"]
    return entry.fields.get("url", "")


def place(entry: Entry) -> str:
    field = {key.lower(): plain(value) for key, value in entry.fields.items()}
    names = ("journal", "booktitle", "school", "publisher", "institution", "howpublished")
    where = next((field[name] for name in names if name in field), "")
    if "volume" in field:
        where += f" {field['volume']}" + (f"({field['number']})" if "number" in field else "")
    return ", ".join(x for x in (where, field.get("pages", "").replace("--", "–")) if x)


def full(entry: Entry) -> str:
    names = [whole_name(person) for person in people(entry)]
    comma = "、" if is_wide(names[0][:1]) else ", "
    parts = [f"{comma.join(names)} ({entry.fields['year']})", f"*{plain(entry.fields['title'])}*"]
    parts += [place(entry)] if place(entry) else []
    return ". ".join(parts) + "." + (f" <{link(entry)}>" if link(entry) else "")
