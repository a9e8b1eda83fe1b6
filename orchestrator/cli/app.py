"""The commands. Each imports what it needs when it runs."""

# ruff: noqa: PLC0415  (start-up stays light)

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestrator import __version__
from orchestrator.cli import completion

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
RunOption = Annotated[
    Path | None,
    typer.Option("--run", help="A run directory; the newest one if not given.", autocompletion=completion.runs),
]
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
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help="Cells by id or glob.", autocompletion=completion.cells_of_matrix),
    ] = None,
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
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only", help="Cells by id or glob; baselines come along.", autocompletion=completion.cells_of_matrix
        ),
    ] = None,
    new: Annotated[bool, typer.Option("--new", help="Start a new run directory instead of going on.")] = False,
    strict: StrictOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Measure what is not measured yet, and write the report. Goes on with the newest run of this matrix."""
    from orchestrator.cli.measure import measure

    raise typer.Exit(measure(matrix, reports, run, only or [], new=new, strict=strict, verbose=verbose))


@app.command()
def rerun(
    cells: Annotated[
        list[str] | None,
        typer.Argument(help="Cell ids or globs (* crosses /).", autocompletion=completion.cells_of_matrix),
    ] = None,
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
    formats: Annotated[
        list[str] | None,
        typer.Option("--format", help="html, md, json, csv or parquet, also several; all but md if not given."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file, or the folder for several formats.")
    ] = None,
) -> None:
    """Write report.html, summary.json, categories.csv, metrics.csv and .parquet anew from a run's records."""
    from orchestrator.cli.commands import write_reports

    write_reports(reports, run, language, formats or [], output)


@app.command()
def compare(
    before: Annotated[Path, typer.Argument(help="The earlier run directory.", autocompletion=completion.runs)],
    after: Annotated[Path, typer.Argument(help="The later run directory.", autocompletion=completion.runs)],
    form: Annotated[str, typer.Option("--format", help="text, json, md or html.")] = "text",
    language: Annotated[str, typer.Option("--language", help="en or ko.")] = "en",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file instead of the terminal.")] = None,
) -> None:
    """Compare two runs cell by cell: what must agree is refused by name, what changed stands beside its effect."""
    from orchestrator.cli.compare import compare as compare_two

    raise typer.Exit(compare_two(before, after, form, language, output))


@app.command()
def serve(
    run: Annotated[
        Path | None,
        typer.Argument(help="A run directory; the newest one if not given.", autocompletion=completion.runs),
    ] = None,
    reports: ReportsOption = REPORTS,
    matrix: Annotated[
        Path | None, typer.Option("--matrix", "-m", help="The run's matrix, for re-runs; as recorded if not given.")
    ] = None,
    host: Annotated[str, typer.Option("--host", help="A loopback address; no other is served.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 takes a free one.")] = 0,
    language: Annotated[str | None, typer.Option("--language", help="en or ko; the matrix's if not given.")] = None,
) -> None:
    """Watch a run in the browser while it goes on, on this machine only; one cell can be measured again from there."""
    from orchestrator.cli.workspace import open_run
    from orchestrator.serve.server import serve as serve_run

    directory = open_run(run, reports)
    serve_run(directory, host=host, port=port, matrix=matrix, language=language, say=typer.echo)


@app.command()
def show(
    cell: Annotated[
        str, typer.Argument(help="A cell id, or a glob that names one.", autocompletion=completion.cells_of_run)
    ],
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


@app.command()
def pin(
    engines: Annotated[
        list[str] | None, typer.Argument(help="Engines of the matrix; all that are found if not given.")
    ] = None,
    matrix: MatrixOption = MATRIX,
    reports: ReportsOption = REPORTS,
) -> None:
    """Write the versions found on this machine into the matrix as pins; nothing else in the file changes."""
    from orchestrator.cli.pin import pin_engines

    pin_engines(matrix, reports, engines or [])


@app.command()
def convert(
    source: Annotated[str, typer.Argument(metavar="SRC.gguf", help="A llama GGUF file, or demo:NAME.")],
    destination: Annotated[Path, typer.Argument(metavar="DEST", help="What to make; never overwritten.")],
    number: Annotated[str, typer.Option("--dtype", help="f32 holds the weights exactly; f16 rounds them.")] = "f32",
    gguf: Annotated[bool, typer.Option("--gguf", help="A GGUF file instead of a folder for MLX-LM.")] = False,
) -> None:
    """Write a GGUF file's weights, unquantised, as a folder that MLX-LM reads, so that two engines run one model."""
    from orchestrator.cli.convert import convert_model

    convert_model(source, destination, number, gguf=gguf)


@app.command()
def workloads(
    name: Annotated[
        str | None,
        typer.Argument(help="A prompt set, or the path of a file of yours.", autocompletion=completion.prompt_sets),
    ] = None,
    prompt: Annotated[str | None, typer.Argument(help="The id of one of its prompts, to show it whole.")] = None,
    form: Annotated[
        str | None, typer.Option("--format", help="Of a file: jsonl, text, folder, spec-bench or humaneval.")
    ] = None,
) -> None:
    """List the prompt sets, the prompts of one set or of a file of yours, or one prompt with its task."""
    from orchestrator.cli.workloads import show_workloads

    show_workloads(name, prompt, form)


@app.command()
def selftest(
    matrix: MatrixOption = MATRIX,
    keep: Annotated[Path | None, typer.Option("--keep", help="A new folder for the evidence.")] = None,
) -> None:
    """Corrupt a real engine's stream in known ways, and show which faults are caught at the current settings."""
    from orchestrator.cli.selftest import run_selftest

    raise typer.Exit(run_selftest(matrix, keep))
