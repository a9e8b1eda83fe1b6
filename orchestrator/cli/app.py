"""The commands. Each imports what it needs when it runs."""

# ruff: noqa: PLC0415  (start-up stays light)

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestrator import __version__

app = typer.Typer(
    name="specmatrix",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    help="Should speculative decoding or MTP be on for this model on this machine?",
    epilog="Exit status: 0 no requested cell failed · 1 some did · 2 usage or matrix error · 130 interrupted.",
)

MatrixOption = Annotated[Path, typer.Option("--matrix", "-m", help="The matrix file.")]
ReportsOption = Annotated[Path, typer.Option("--reports", help="Where runs land.")]
RunOption = Annotated[Path | None, typer.Option("--run", help="A run directory; the newest one if not given.")]
StrictOption = Annotated[bool, typer.Option("--strict", help="Unavailable and unsupported cells fail too.")]
VerboseOption = Annotated[bool, typer.Option("--verbose", "-v", help="Each trial, with the engine's last log line.")]
MATRIX, REPORTS = Path("matrix.yaml"), Path("reports")


@app.callback(invoke_without_command=True)
def _root(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    if version:
        typer.echo(f"specmatrix {__version__}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())
        raise typer.Exit(2)


@app.command()
def init(path: Annotated[Path, typer.Argument(help="Where to write it.")] = MATRIX) -> None:
    """Write a commented matrix to start from; never overwrites."""
    from orchestrator.cli.commands import write_template

    write_template(path)


@app.command()
def check(matrix: MatrixOption = MATRIX, reports: ReportsOption = REPORTS, strict: StrictOption = False) -> None:
    """Validate the matrix, probe engines, pins and files; print each cell's fate and why."""
    from orchestrator.cli.commands import check_matrix

    raise typer.Exit(check_matrix(matrix, reports, strict=strict))


@app.command()
def plan(
    matrix: MatrixOption = MATRIX,
    reports: ReportsOption = REPORTS,
    run: RunOption = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="Cells by id or glob.")] = None,
    new: Annotated[bool, typer.Option("--new", help="As for a new run directory.")] = False,
) -> None:
    """Show what `run` would measure: cells, sets in order, sessions and estimated time."""
    from orchestrator.cli.commands import show_plan

    show_plan(matrix, reports, run, only or [], new=new)


@app.command()
def run(
    matrix: MatrixOption = MATRIX,
    reports: ReportsOption = REPORTS,
    run: RunOption = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="Cells by id or glob; baselines come along.")] = None,
    new: Annotated[bool, typer.Option("--new", help="Start a new run directory instead of going on.")] = False,
    strict: StrictOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Measure what is not measured yet, and write the report. Goes on with the newest run of this matrix."""
    from orchestrator.cli.measure import measure

    raise typer.Exit(measure(matrix, reports, run, only or [], new=new, strict=strict, verbose=verbose))


@app.command()
def rerun(
    cells: Annotated[list[str] | None, typer.Argument(help="Cell ids or globs (* crosses /).")] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Every cell that failed.")] = False,
    matrix: MatrixOption = MATRIX,
    reports: ReportsOption = REPORTS,
    run: RunOption = None,
    strict: StrictOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Measure cells anew, each with its baseline, as a new attempt; the others keep theirs."""
    from orchestrator.cli.measure import measure_again

    raise typer.Exit(measure_again(matrix, reports, run, cells or [], failed=failed, strict=strict, verbose=verbose))


@app.command()
def status(reports: ReportsOption = REPORTS, run: RunOption = None) -> None:
    """Show each cell's status in a run."""
    from orchestrator.cli.commands import show_status

    show_status(reports, run)


@app.command()
def report(
    reports: ReportsOption = REPORTS,
    run: RunOption = None,
    language: Annotated[str | None, typer.Option("--language", help="en or ko; the matrix's if not given.")] = None,
) -> None:
    """Write report.html, summary.json, metrics.csv and metrics.parquet anew from a run's records."""
    from orchestrator.cli.commands import write_reports

    write_reports(reports, run, language)


@app.command()
def show(
    cell: Annotated[str, typer.Argument(help="A cell id, or a glob that names one.")],
    reports: ReportsOption = REPORTS,
    run: RunOption = None,
) -> None:
    """Show one cell: settings, command line, status, conditions, log tail."""
    from orchestrator.cli.commands import show_cell

    show_cell(cell, reports, run)


@app.command()
def engines(matrix: MatrixOption = MATRIX, reports: ReportsOption = REPORTS) -> None:
    """List adapters, the versions found on this machine, their pins, and how each adapter was verified."""
    from orchestrator.cli.commands import show_engines

    show_engines(matrix, reports)
