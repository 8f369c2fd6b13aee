#!/usr/bin/env python3
"""Scores predictions of several extractors: score.py CORPUS PREDICTIONS.jsonl…

Articles, then the other page types, in two halves by a hash of the id: rules were tuned on the first, the second was
only measured. For ours the share of pages called "article" that are articles is printed, too.
Word F1: bags of words, mean over pages. Shingle F1: runs of four words, mean over pages. Fields: share that agrees.
"""
import collections
import hashlib
import json
import os
import re
import sys

WORD = re.compile(r"\w+")


def words(text):
    return WORD.findall((text or "").lower())


def shingles(tokens, n=4):
    if len(tokens) < n:
        return collections.Counter([tuple(tokens)] if tokens else [])
    return collections.Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def agreement(found, true):
    common, a, b = sum((found & true).values()), sum(found.values()), sum(true.values())
    if a == 0 and b == 0:
        return 1.0, 1.0, 1.0
    precision, recall = common / a if a else 0.0, common / b if b else 0.0
    return precision, recall, 2 * precision * recall / (precision + recall) if common else 0.0


def is_tuned(id):
    return hashlib.sha256(id.encode()).digest()[0] % 2 == 0


def field(found, page, key, truth_key):
    if truth_key == "publish_date":
        return (found.get(key) or "")[:10] == page[truth_key][:10]
    return words(found.get(key)) == words(page[truth_key])


def row(pages, predictions):
    per_word, per_shingle, fields = [], [], []
    for page in pages:
        found = predictions.get(page["id"], {})
        a, b = words(found.get("text")), words(page["main_content"])
        per_word.append(agreement(collections.Counter(a), collections.Counter(b)))
        per_shingle.append(agreement(shingles(a), shingles(b)))
    for key, truth_key in (("title", "title"), ("author", "author"), ("published", "publish_date")):
        known = [page for page in pages if page.get(truth_key)]
        right = sum(field(predictions.get(page["id"], {}), page, key, truth_key) for page in known)
        fields.append(right / len(known) if known else float("nan"))
    mean = lambda rows, i: sum(r[i] for r in rows) / len(rows)
    return [mean(per_word, 2), mean(per_word, 0), mean(per_word, 1), mean(per_shingle, 2), *fields]


def main():
    corpus = sys.argv[1]
    truth = [json.loads(line) for line in open(os.path.join(corpus, "truth.jsonl"), encoding="utf-8")]
    halves = (
        ("held out", lambda id: not is_tuned(id)),
        ("tuned on", is_tuned),
        ("all", lambda id: True),
    )
    types = sorted({page["page_type"] for page in truth} - {"article"})
    every = {}
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as file:
            name = os.path.basename(path).removesuffix(".jsonl")
            every[name] = {found["id"]: found for found in map(json.loads, file)}
    for kind in ["article", *types]:
        # The first table is read by the benchmarks: a page type is a column of the others only.
        label = "" if kind == "article" else f" {'type':13} |"
        print(f"| {'extractor':28} |{label} half     | pages | word F1 | P      | R      | shingle F1 | title | author | date  |")
        for name, predictions in every.items():
            for half, is_in in halves:
                pages = [page for page in truth if page["page_type"] == kind and is_in(page["id"])]
                if pages:
                    word, p, r, shingle, title, author, date = row(pages, predictions)
                    label = "" if kind == "article" else f" {kind:13} |"
                    print(f"| {name:28} |{label} {half:8} | {len(pages):5} | {word:.4f}  | {p:.4f} | {r:.4f} | {shingle:.4f}     | {title:.3f} | {author:.3f}  | {date:.3f} |")
    for name, predictions in every.items():
        for half, is_in in halves:
            called = [page for page in truth if is_in(page["id"]) and predictions.get(page["id"], {}).get("page_type") == "article"]
            if called:
                right = sum(page["page_type"] == "article" for page in called)
                print(f"{name}, {half}: {right} of {len(called)} pages that are called article are one")


if __name__ == "__main__":
    main()
