"""Makes ``reports/sample/`` from a run: the page in both languages, its conclusions, and a note on how it was made.

    specmatrix run --new
    python scripts/make_sample.py reports/<that run>

Nothing is changed but the list of files under "Raw data", since the run's folder is not committed. Refuses a page that
holds a path of this machine.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from orchestrator.report.analysis.analyse import analyse  # noqa: E402
from orchestrator.report.analysis.findings import Analysis  # noqa: E402
from orchestrator.report.data.summary import summary_data  # noqa: E402
from orchestrator.report.language.untrusted import clean  # noqa: E402
from orchestrator.report.language.words import Words  # noqa: E402
from orchestrator.report.model.parts import Link  # noqa: E402
from orchestrator.report.output.markdown import escape  # noqa: E402
from orchestrator.report.output.render import render_html  # noqa: E402
from orchestrator.report.page.first_screen.context import answers_per_cell, machine, run_settings  # noqa: E402
from orchestrator.report.page.view import build_view  # noqa: E402
from orchestrator.schema.record import RunHeader  # noqa: E402
from orchestrator.schema.status import STATUS_RULES  # noqa: E402
from orchestrator.store.directory import RunDirectory  # noqa: E402
from orchestrator.store.index import Index  # noqa: E402

SAMPLE = ROOT / "reports" / "sample"
PAGES = {"en": "report.html", "ko": "report.ko.html"}
PATHS = re.compile(r"(?<![\w.:/])/(?:home|root|Users|work|tmp|var|private|opt|mnt)/[^\s\"'<>]*")
README = """\
# A sample report

`report.html` (English) and `report.ko.html` (Korean) are the pages of one real run; `summary.json` holds its
conclusions with every raw value. Open a page in a browser: it needs no network.

## How it was made

In a clone of this repository, with its default `matrix.yaml`:

```bash
bash scripts/setup.sh
source .venv/bin/activate
{command}
python scripts/make_sample.py reports/{run}
```

* When: {when}, specmatrix {tool}.
* Machine: {machine}; load average when it began: {load}.
* Engines: {engines}.
* {sessions} sessions × {answers} (preset `{preset}`),
  {done} of {all} cells measured.
* Validity of the run, by its own rules: **{validity}**.{busy}
{notes}
## What it shows, and what it does not

The models called tiny were made for this tool. They exercise real engines; **their speed says nothing about any other
model**, and nor does whether speculation pays on them. SmolLM2-135M-Instruct, of the workload `tasks`, is a real model,
small enough for one processor core; its draft was distilled for this tool and loses, as it must on a core. The run's
own folder (journal, logs, every observation) is not kept here; `{command}` makes another one.
"""
BUSY_LOAD = 2.0
BUSY = """ Other programs kept the {cores} cores busy meanwhile:
  the intervals are wide, and the page says itself what cannot be told from noise."""


def main(arguments: list[str]) -> int:
    """Writes the sample; 1 when a page would name a path of this machine."""
    if len(arguments) != 1:
        print("usage: python scripts/make_sample.py RUN")
        return 2
    directory = RunDirectory.open(Path(arguments[0]))
    index = Index.build(directory.records())
    found = analyse(index, directory.header)
    texts = {"README.md": _readme(found, directory.header, index)}
    summary = summary_data(found, directory.header)
    texts["summary.json"] = json.dumps(summary, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    for language, name in PAGES.items():
        words = Words(language)
        view = build_view(found, directory.header, index, language, words, directory.path)
        view = dataclasses.replace(view, files=(Link("summary.json", "summary.json"),))
        texts[name] = render_html(view, words)
    leaks = [f"{name}: {leak}" for name, text in texts.items() for leak in sorted(_leaks(text))]
    if leaks:
        print("paths of this machine, so nothing was written:", *leaks, sep="\n  ")
        return 1
    SAMPLE.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (SAMPLE / name).write_text(text, encoding="utf-8")
        print(f"wrote {(SAMPLE / name).relative_to(ROOT)}, {len(text.encode()) // 1000} kB")
    return 0


def _leaks(text: str) -> set[str]:
    mine = {str(ROOT), str(Path.home()), tempfile.gettempdir(), os.environ.get("VIRTUAL_ENV", "")} - {"", "/"}
    return {match[0][:120] for match in PATHS.finditer(text)} | {path for path in mine if path in text}


def _readme(found: Analysis, header: RunHeader, index: Index) -> str:
    settings = run_settings(index)
    load = header.host.get("load_average")
    engines = index.matrix.engines if index.matrix is not None else {}
    busy = isinstance(load, list) and float(load[0]) > BUSY_LOAD
    return README.format(
        command=header.command,
        run=header.run,
        when=f"{header.created_utc[:16].replace('T', ' ')} UTC",
        tool=header.tool_version,
        machine=machine(header.host),
        load=f"{load[0]:.1f}" if isinstance(load, list) else "not recorded",
        engines=", ".join(
            f"{name} {one.version or one.build or 'of unknown version'}"
            for name, one in engines.items()
            if one.unavailable is None
        ),
        sessions=settings.get("sessions"),
        answers=answers_per_cell(index, settings.get("trials", 0), Words()),
        preset=settings.get("preset"),
        done=sum(len(ids) for status, ids in found.coverage if status == "ok"),
        all=sum(len(ids) for _, ids in found.coverage),
        validity=found.validity.value,
        busy=BUSY.format(cores=header.host.get("cores_usable", "?")) if busy else "",
        notes="".join(f"* {note.utc[11:16]} UTC, {note.what}: {escape(clean(note.text))}.\n" for note in index.notes)
        + "".join(
            f"* {STATUS_RULES[status].word}, with its reason on the page: {', '.join(f'`{cell}`' for cell in ids)}.\n"
            for status, ids in found.coverage
            if status != "ok" and ids
        ),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
