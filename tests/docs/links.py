"""Links between the HTML files of a folder, followed without a network."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

TARGETS = {"a": "href", "link": "href", "img": "src", "script": "src"}


class Page(HTMLParser):
    """What an HTML file links to, and the places in it that can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places = {"", "top"}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.places |= {found[name] for name in ("id", "name") if found.get(name)}
        if target := found.get(TARGETS.get(tag, "")):
            self.links.append(target)


def broken_links(folder: Path) -> list[str]:
    """Links of the HTML files of a folder that lead nowhere, as "page: link".

    Other sites are not asked; what leads there must be https, or the page of a paper.
    """
    pages = {
        path: Page(path.read_text(encoding="utf-8")) for path in folder.rglob("*.html")
    }
    return [
        f"{path.relative_to(folder)}: {link}"
        for path, page in pages.items()
        for link in page.links
        if not _leads_somewhere(path, link, pages)
    ]


def _leads_somewhere(path: Path, link: str, pages: dict[Path, Page]) -> bool:
    address = urlsplit(link)
    if address.scheme or address.netloc:
        return address.scheme in ("https", "data", "mailto")
    target = path
    if address.path:
        target = (path.parent / unquote(address.path)).resolve()
    if target not in pages:
        return target.is_file()
    return unquote(address.fragment) in pages[target].places
