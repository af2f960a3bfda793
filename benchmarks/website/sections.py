"""The sections of a report on what its tables alone do not show, as HTML."""

from collections.abc import Sequence
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from benchmarks.report import page
from benchmarks.runs.store import sort_records
from benchmarks.website.reports import Report

HEADING, SUBHEADING = "\n## ", "\n### "


@dataclass(frozen=True)
class Section:
    """One section as printed.

    Attributes:
        title: its heading.
        body: what it says of all columns.
        more: what it says of single ones, each with its heading.
    """

    title: str
    body: Markup
    more: Sequence[tuple[str, Markup]] = ()


def sections_of(report: Report) -> list[Section]:
    """Return the sections of a report, in its order."""
    parts = page.sections(report.layout, sort_records(report.shown), report.cells_shown)
    text = "\n" + "\n\n".join(parts)
    return [_section(each) for each in text.split(HEADING)[1:]]


def _section(text: str) -> Section:
    (title, body), *more = map(_titled, text.split(SUBHEADING))
    return Section(title, body, more)


def _titled(text: str) -> tuple[str, Markup]:
    """Return the heading of a text, and the rest as HTML whose tables scroll."""
    title, _, body = text.partition("\n")
    html = MarkdownIt("commonmark").enable("table").render(body)
    box = (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(title)}">'
    )
    for old, new in (
        ("<table>", f"{box}<table>"),
        ("</table>", "</table></div>"),
        (' style="text-align:right"', ' class="n"'),
        (' style="text-align:left"', ""),
    ):
        html = html.replace(old, new)
    return title, Markup(html)
