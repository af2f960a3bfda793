"""From reports to the files of the site."""

import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markdown_it import MarkdownIt
from markupsafe import Markup

from benchmarks.cli import catalogue
from benchmarks.report import remarks
from benchmarks.report.fair_summary import fraction
from benchmarks.report.render import to_csv
from benchmarks.report.tables import long_table
from benchmarks.rows.contract import SEES
from benchmarks.runs.paths import ROOT
from benchmarks.website import claims, methods
from benchmarks.website.cell_data import cell_lines, compact, json_lines, page_data
from benchmarks.website.pictures import Picture, pictures_of
from benchmarks.website.reports import Report, digest_of, load
from benchmarks.website.run_data import index_script, runs_script
from benchmarks.website.sections import sections_of
from benchmarks.website.table_page import KINDS, parts_of, verdicts
from metricopt.errors import ConfigError
from metricopt.files import read_text

HERE = Path(__file__).parent
MARK = "data/runs/index.js"
"""A file by which the folder of an earlier site is known."""
SOURCES = {
    "metricopt": "MetricOpt (Huang et al., CVPR 2021)",
    "learned_losses": "Methods that learn the loss",
    "mirror_descent": "Learned loss geometries",
    "ours": "Questions of our own",
}
"""Titles of the folders of tables."""
FEW_TABLES = 3
"""Tables that a method needs for the picture of the first page."""
Files = dict[str, str | bytes]
"""Contents by path within the site."""


@dataclass(frozen=True)
class Site:
    """All pages of some reports.

    Attributes:
        reports: what the pages are about.
    """

    reports: Sequence[Report]

    @cached_property
    def described(self) -> list[methods.Method]:
        """All methods."""
        return methods.methods(self.reports)

    @cached_property
    def judged(self) -> list[claims.Judged]:
        """All claims."""
        return claims.judged(self.reports)

    @cached_property
    def ranked(self) -> list[tuple[methods.Method, methods.Standing]]:
        """Rows that are compared: those of several tables first, the best first."""
        found = [(m, s) for m in self.described for s in m.standings if s.within]
        return sorted(found, key=lambda pair: _order(pair[1]))

    @cached_property
    def _pages(self) -> Environment:
        pages = Environment(
            loader=PackageLoader("benchmarks.website"),
            autoescape=select_autoescape(),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        counts = [len(r.records) + len(r.own) for r in self.reports]
        shared = {"count": sum(counts), "digest": digest_of(self.reports)}
        pages.globals.update(shared, page="")
        return pages

    def _page(self, template: str, **values: Any) -> str:
        return self._pages.get_template(f"{template}.html").render(values)

    def files(self) -> Files:
        """Return the contents of all files that are made of records."""
        found: Files = {
            "index.html": self._index(),
            "claims.html": self._claims(),
            "methods.html": self._methods(),
            "findings.html": self._findings(),
            "run.html": self._page("run", reports=self.reports),
            "data/methods.js": _assigned("methods", self._regrets()),
            "data/runs/index.js": index_script(self.reports),
        }
        for report in self.reports:
            found |= self._files_of(report)
        return found

    def _files_of(self, report: Report) -> Files:
        frame = long_table(report.cells_shown)
        lines, pictures = cell_lines(frame), pictures_of(report)
        return {
            f"{report.name}.html": self._table(report, pictures),
            **{each.file: each.content for each in pictures},
            f"data/{report.name}.js": _assigned("table", page_data(report, lines)),
            f"data/{report.name}.csv": to_csv(frame),
            f"data/{report.name}.jsonl": json_lines(lines),
            f"data/runs/{report.name}.js": runs_script(report),
        }

    def _index(self) -> str:
        about = catalogue.experiments()
        groups: dict[str, list[tuple[Report, str, Any]]] = {}
        for report in self.reports:
            name = report.layout.experiment
            line = (report, about.get(name, ""), verdicts(report.cells))
            groups.setdefault(_source(name), []).append(line)
        order = [*SOURCES.values(), *groups]
        return self._page(
            "index",
            page="index",
            reports=self.reports,
            claims=self.judged,
            cells=sum(len(report.cells) for report in self.reports),
            groups=sorted(groups.items(), key=lambda group: order.index(group[0])),
            least=FEW_TABLES,
        )

    def _table(self, report: Report, pictures: Sequence[Picture]) -> str:
        rows = [row for row in report.layout.rows if row.budget is None]
        lines = remarks.facts(report.layout, report.shown).splitlines()
        notes = remarks.notes(report.layout, report.cells_shown)
        pairs = [line.removeprefix("- ").partition(": ")[::2] for line in lines]
        seen = {row.sees for row in rows}
        budgets = report.layout.query_budgets or (15, 50, 150, 500)
        return self._page(
            "table",
            report=report,
            parts=parts_of(report),
            sections=sections_of(report),
            pictures=pictures,
            sees=[word for word in (*SEES, "") if word in seen],
            families=list(dict.fromkeys(row.family for row in rows)),
            budgets=sorted({0, 15, *budgets}),
            facts=pairs,
            notes=[note.replace("`", "") for note in notes],
        )

    def _claims(self) -> str:
        kinds = {
            claims.HOLDS: "better",
            claims.IN_PART: "equal",
            claims.OPPOSITE: "worse",
            claims.NOT_FOUND: "unclear",
            claims.UNMEASURED: "none",
        }
        groups: dict[str, list[claims.Judged]] = {}
        for each in self.judged:
            groups.setdefault(each.claim.paper, []).append(each)
        words = [each.verdict for each in self.judged]
        totals = [(word, kind, words.count(word)) for word, kind in kinds.items()]
        return self._page(
            "claims", page="claims", groups=groups.items(), kinds=kinds, totals=totals
        )

    def _methods(self) -> str:
        ranked = [(method, s, _counts(s)) for method, s in self.ranked]
        rows = [s.row for _, s in self.ranked]
        seen = {row.sees for row in rows}
        return self._page(
            "methods",
            page="methods",
            methods=self.described,
            ranked=ranked,
            sees=[word for word in SEES if word in seen],
            families=list(dict.fromkeys(row.family for row in rows)),
            budgets=methods.BUDGETS,
            middle=methods.BUDGETS[1],
            least=methods.LEAST,
            fraction=fraction,
            tested=lambda s: ", ".join(f"{n} {word}" for word, _, n in _counts(s)),
        )

    def _findings(self) -> str:
        prose = read_text(ROOT / "docs" / "findings.md")
        # Links lead to pages of the repository, which may not be beside the site.
        html = MarkdownIt("commonmark", {"html": True}).enable("table").render(prose)
        return self._page("findings", page="findings", prose=Markup(_unlinked(html)))

    def _regrets(self) -> list[dict[str, Any]]:
        return [
            {
                "label": standing.row.label,
                "sees": standing.row.sees,
                "budget": budget,
                "regret": round(within.regret, 6),
                "rank": round(within.rank, 2),
                "tables": within.tables,
            }
            for _, standing in self.ranked
            for budget, within in standing.within.items()
            if within.tables >= FEW_TABLES
        ]


def write_site(out: Path, results: Path, own: Path | None = None) -> Site:
    """Build the site in a folder, in place of an earlier one.

    Args:
        out: the folder; made if missing. Nothing is left half-built.
        results: folder of the committed reports.
        own: folder of the reports of a user, shown beside them; None to leave them out.

    Raises:
        ConfigError: if the folder holds anything but an earlier site.
        DataError: if there is no report, or records are damaged.
    """
    if out.exists() and not (out.is_dir() and (_is_site(out) or _is_empty(out))):
        raise ConfigError(f"expected no folder {out}, or one with an earlier site")
    site = Site(load(results, own))
    out.parent.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}-"))
    try:
        _write(new, site.files())
        shutil.copytree(HERE / "static", new, dirs_exist_ok=True)
        _write(new, {"vega.js": _bundle()})
        new.chmod(0o755)
        shutil.rmtree(out, ignore_errors=True)
        os.replace(new, out)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return site


def _write(folder: Path, files: Mapping[str, str | bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def _bundle() -> str:
    """Return Vega-Lite with all it needs; its own names are hidden from our scripts."""
    return f"(() => {{\n{vl_convert.javascript_bundle()}\n}})();\n"


def _is_site(folder: Path) -> bool:
    return (folder / MARK).is_file()


def _is_empty(folder: Path) -> bool:
    return not any(folder.iterdir())


def _assigned(name: str, content: Any) -> str:
    return f"(window.metricopt??={{}}).{name}={compact(content)};\n"


def _source(experiment: str) -> str:
    """Return the title of the folder of a table, which its module lies in."""
    name = f"{experiment.replace('-', '_')}.py"
    found = [
        path.parent.name for path in (ROOT / "benchmarks/tables").glob(f"*/{name}")
    ]
    return SOURCES.get(found[0], found[0]) if found else "Others"


def _order(standing: methods.Standing) -> tuple[bool, float]:
    """Return what sorts rows: those of several tables, by regret at 50 queries."""
    middle = standing.within.get(methods.BUDGETS[1])
    if middle is None or middle.tables < FEW_TABLES:
        middle = [*standing.within.values()][-1]
    return middle.tables < FEW_TABLES, middle.regret


def _counts(standing: methods.Standing) -> list[tuple[str, str, int]]:
    found: Iterable[tuple[str, str]] = KINDS.items()
    known = standing.verdicts
    return [(word, kind, known[word]) for word, kind in found if word in known]


def _unlinked(html: str) -> str:
    """Return HTML whose links to files of the repository are plain text."""
    return re.sub(r'<a href="(?!https?:)[^"]*">(.*?)</a>', r"\1", html, flags=re.DOTALL)
