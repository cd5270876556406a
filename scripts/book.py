"""The two steps of scripts/book around mdBook.

stage DOCS OUT   copies the pages; a link that leaves DOCS leads to the repository instead, and every README.md, which mdBook
                 renames without its links, is called index.md.
links BOOK       fails if a link or picture inside the built book leads nowhere.
"""

import html.parser
import os
import re
import shutil
import sys
import tomllib
import urllib.parse

CONFIG = "book/book.toml"


def stage(docs, out):
    with open(CONFIG, "rb") as file:
        repository = tomllib.load(file)["output"]["html"]["git-repository-url"]
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(docs, f"{out}/src")
    with open(CONFIG) as file:
        config = file.read().replace('src = "../docs"', 'src = "src"')
    with open(f"{out}/book.toml", "w") as file:
        file.write(config)
    missing = pages(docs) - set(re.findall(r"\]\(([^)]+)\)", read(f"{docs}/SUMMARY.md"))) - {"SUMMARY.md"}
    if missing:
        sys.exit(f"scripts/book: not in {docs}/SUMMARY.md: {', '.join(sorted(missing))}")
    for page in pages(docs):
        folder = os.path.dirname(f"{docs}/{page}")

        def outside(match):
            target = match.group(1)
            path = os.path.normpath(os.path.join(folder, target.partition("#")[0]))
            if "://" in target or target.startswith("#") or path == docs or path.startswith(f"{docs}/"):
                return match.group(0).replace("README.md", "index.md")
            return f"]({repository}/blob/main/{path})"

        text = re.sub(r"\]\(([^)\s]+)\)", outside, read(f"{docs}/{page}"))
        with open(f"{out}/src/{page}", "w") as file:
            file.write(text)
        if os.path.basename(page) == "README.md":
            os.rename(f"{out}/src/{page}", f"{out}/src/{os.path.dirname(page)}/index.md")


def pages(docs):
    found = set()
    for folder, _, names in os.walk(docs):
        found |= {os.path.relpath(os.path.join(folder, name), docs) for name in names if name.endswith(".md")}
    return found


def read(path):
    with open(path) as file:
        return file.read()


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.targets, self.anchors = [], set()

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors.add(attributes.get("id"))
        target = attributes.get("href" if tag == "a" else "src" if tag == "img" else "")
        if target:
            self.targets.append(target)


def links(book):
    built = {}
    for folder, _, names in os.walk(book):
        for name in names:
            if name.endswith(".html") and name not in ("print.html", "toc.html", "404.html"):
                page = Page()
                page.feed(read(os.path.join(folder, name)))
                built[os.path.normpath(os.path.join(folder, name))] = page
    wrong, checked = [], 0
    for path, page in built.items():
        for target in page.targets:
            url = urllib.parse.urlparse(target)
            if url.scheme or url.netloc:
                continue
            checked += 1
            file = os.path.normpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(url.path))) if url.path else path
            if not os.path.exists(file):
                wrong.append(f"{path}: {target}")
            elif url.fragment and file in built and urllib.parse.unquote(url.fragment) not in built[file].anchors:
                wrong.append(f"{path}: {target}")
    if wrong or checked < 100:
        sys.exit("scripts/book: links that lead nowhere:\n" + "\n".join(wrong or [f"only {checked} links were found"]))
    print(f"target/book: {len(built)} pages, {checked} links")


if __name__ == "__main__":
    {"stage": stage, "links": links}[sys.argv[1]](*sys.argv[2:])
