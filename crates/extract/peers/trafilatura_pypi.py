#!/usr/bin/env python3
"""Runs trafilatura from PyPI over a corpus: trafilatura_pypi.py CORPUS OUT (default and precision mode).

Writes OUT/trafilatura-pypi.jsonl and OUT/trafilatura-pypi-precision.jsonl and prints pages per CPU second.
"""
import gzip
import json
import os
import sys
import time

import trafilatura


def main():
    corpus, out = sys.argv[1:3]
    os.makedirs(out, exist_ok=True)
    rows = [json.loads(line) for line in open(os.path.join(corpus, "truth.jsonl"), encoding="utf-8")]
    pages = [(row["id"], row["url"], gzip.open(os.path.join(corpus, "html", row["id"] + ".html.gz")).read()) for row in rows]
    for name, precision in (("trafilatura-pypi", False), ("trafilatura-pypi-precision", True)):
        start, found = time.process_time(), []
        for id, url, html in pages:
            article = trafilatura.bare_extraction(html, url=url, favor_precision=precision, with_metadata=True, include_comments=False)
            found.append((id, article.as_dict() if article is not None else {}))
        print(f"{name:28} {len(pages):8} {len(pages) / (time.process_time() - start):12.0f}")
        with open(os.path.join(out, name + ".jsonl"), "w", encoding="utf-8") as file:
            for id, article in found:
                row = {"id": id, "text": article.get("text"), "title": article.get("title"), "author": article.get("author"), "published": article.get("date")}
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
