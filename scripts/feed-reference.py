#!/usr/bin/env python3
"""Writes what other parsers find in a folder of feeds, one JSON line a file.

The results are compared with ours by `cargo run -p tidings-feed --example compare`.

  pip install feedparser
  scripts/feed-reference.py feedparser FOLDER > feedparser.jsonl   # runs feedparser
  scripts/feed-reference.py gofeed FOLDER > gofeed.jsonl           # reads its expected *.json
"""

import calendar
import json
import pathlib
import re
import sys


def header_lines(data):
    """HTTP headers that a feedparser test asks for, in its first comment."""
    head = data[:2000].decode("latin-1")
    return {
        name.strip().lower(): value.strip()
        for name, value in re.findall(r"^Header:\s*([^:\n]+):([^\n]*)$", head, re.M)
    }


def seconds(parsed):
    return calendar.timegm(parsed) if parsed else None


def by_feedparser(path):
    import feedparser

    data = path.read_bytes()
    headers = header_lines(data)
    result = feedparser.parse(data, response_headers=headers or None)
    entries = []
    for entry in result.entries:
        links = [l for l in entry.get("links", []) if l.get("rel", "alternate") == "alternate" and l.get("href")]
        dates = [dict.get(entry, key) for key in ("published_parsed", "updated_parsed", "created_parsed")]
        entries.append(
            {
                "link": links[0]["href"] if links else entry.get("link"),
                "title": entry.get("title"),
                "dates": [seconds(date) for date in dates if date],
            }
        )
    return {
        "content_type": headers.get("content-type"),
        "url": headers.get("content-location"),
        "entries": entries,
    }


def moment(text):
    import datetime

    if not text:
        return None
    text = text.replace("Z", "+00:00")
    text = re.sub(r"\.\d+", "", text)
    return int(datetime.datetime.fromisoformat(text).timestamp())


def by_gofeed(path):
    expected = path.with_suffix(".json")
    if path.suffix == ".json":
        expected = path.with_name(path.stem + "_expected.json")
    if not expected.exists() or path.stem.endswith("_expected"):
        return None
    data = json.loads(expected.read_text())
    if not isinstance(data, dict):
        return None
    entries = []
    for entry in data.get("items") or data.get("entries") or []:
        link = entry.get("link") or entry.get("url")
        links = [l for l in entry.get("links") or [] if not isinstance(l, dict) or l.get("rel", "alternate") in ("", "alternate")]
        if links:
            link = links[0].get("href") if isinstance(links[0], dict) else links[0]
        dates = [entry.get(key) for key in ("pubDateParsed", "publishedParsed", "updatedParsed", "date_published", "date_modified")]
        dates = [moment(date) for date in dates if date]
        entries.append({"link": link, "title": entry.get("title"), "dates": dates})
    return {"entries": entries}


def main():
    kind, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    answer = {"feedparser": by_feedparser, "gofeed": by_gofeed}[kind]
    for path in sorted(folder.rglob("*")):
        if path.suffix not in (".xml", ".json") or not path.is_file():
            continue
        try:
            found = answer(path)
        except Exception as error:  # the reference may fail; then it says nothing
            print(f"{path}: {error}", file=sys.stderr)
            continue
        if found is not None:
            print(json.dumps({"file": str(path.relative_to(folder)), **found}))


main()
