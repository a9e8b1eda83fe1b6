"""Laws of the expander, over matrices that nobody would write."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.matrix.build import BASELINE
from orchestrator.matrix.expand import expand
from orchestrator.matrix.types import (
    Axes,
    CheckSettings,
    Exclusion,
    HostSettings,
    Inclusion,
    Matrix,
    ModelFiles,
    ModelSpec,
    RunSettings,
)
from orchestrator.schema.cell import EngineConfig, EosPolicy, Method, MethodKind, Role, Sampling, Workload

# A slow machine is no fault of the expander.
unhurried = settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.too_slow])

ENGINES, MODELS = ("e1", "e2"), ("m1", "m2", "m3")
METHODS = {
    "none": BASELINE,
    "d": Method("d", MethodKind.DRAFT, 4, "small"),
    "p": Method("p", MethodKind.MTP, 2),
    "n": Method("n", MethodKind.NGRAM, 8),
}
SAMPLING = {name: Sampling(name, 0.0, 7, 0, 1.0, 0.0, 1.0, 0.0, 0.0) for name in ("s1", "s2")}
WORKLOADS = {name: Workload(name, "p", 8, EosPolicy.STOP) for name in ("w1", "w2")}
AXES = {
    "engine": ENGINES,
    "model": MODELS,
    "method": tuple(METHODS),
    "sampling": tuple(SAMPLING),
    "workload": tuple(WORKLOADS),
}


def names(axis: Any) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(AXES[axis]), min_size=1, max_size=4).map(tuple)


axes = st.builds(Axes, **{axis: names(axis) for axis in AXES})
exclusions = st.lists(
    st.builds(Exclusion, **{axis: st.none() | names(axis) for axis in AXES}, why=st.just("")), max_size=3
).map(tuple)
files = st.dictionaries(
    st.sampled_from(ENGINES),
    st.builds(
        ModelFiles,
        target=st.just("t"),
        drafts=st.sampled_from([{}, {"small": "d"}, {"other": "d"}]),
        mtp=st.sampled_from([None, "x"]),
        mtp_inside=st.booleans(),
    ),
)
FULL = {engine: ModelFiles("t", {"small": "d"}, None, True) for engine in ENGINES}


def matrix(
    product: Axes,
    exclude: tuple[Exclusion, ...] = (),
    include: tuple[Inclusion, ...] = (),
    models: Any = None,
    twin: bool = True,
) -> Matrix:
    return Matrix(
        name="x",
        path=Path("matrix.yaml"),
        text="",
        engines={name: EngineConfig(name, "a") for name in ENGINES},
        models={name: ModelSpec(name, None, False, (models or {}).get(name, FULL)) for name in MODELS},
        methods=METHODS,
        sampling=SAMPLING,
        workloads=WORKLOADS,
        run=RunSettings("demo", 4, 3, 1, "abba", 7, "cold", twin, 1.0, 1.0, 1.0),
        host=HostSettings((), "clean"),
        axes=product,
        exclude=exclude,
        include=include,
        checks=CheckSettings(True),
        language="en",
    )


def ids(expansion: Any) -> list[str]:
    return [cell.id for cell in expansion.cells]


model_files = st.fixed_dictionaries(dict.fromkeys(MODELS, files))


@unhurried
@given(axes, exclusions, model_files, st.booleans())
def test_every_speculative_cell_has_exactly_one_baseline_in_its_block(
    product: Any, exclude: Any, models: Any, twin: Any
) -> None:
    expansion = expand(matrix(product, exclude, models=models, twin=twin), str)
    for block in expansion.blocks:
        assert [cell.role for cell in block.members].count(Role.BASELINE) == 1
        assert block.baseline.role is Role.BASELINE
        assert all(cell.role is Role.SPECULATIVE for cell in block.cells)
        assert (block.twin is not None) is twin
        assert {cell.block_id for cell in block.members} == {block.id}
    assert len({block.id for block in expansion.blocks}) == len(expansion.blocks)


@unhurried
@given(axes, exclusions, model_files)
def test_ids_are_unique_and_every_point_has_one_fate(product: Any, exclude: Any, models: Any) -> None:
    expansion = expand(matrix(product, exclude, models=models, twin=False), str)
    found = ids(expansion)
    assert len(set(found)) == len(found)
    wanted = {
        f"{e}/{m}/{k}/{s}/{w}"
        for e in product.engine
        for m in product.model
        for k in product.method
        for s in product.sampling
        for w in product.workload
    }
    refused, excluded = {one for one, _ in expansion.not_formed}, {one for one, _ in expansion.excluded}
    assert not refused & excluded
    assert not refused & set(found)
    # Besides what was asked for there are only baselines; an excluded baseline comes back where it is needed.
    assert wanted <= set(found) | refused | excluded
    assert all("/none/" in one for one in set(found) - (wanted - refused - excluded))
    assert not {one for one in excluded & set(found) if "/none/" not in one}


@unhurried
@given(axes, exclusions)
def test_exclude_never_takes_a_baseline_that_is_needed(product: Any, exclude: Any) -> None:
    expansion = expand(matrix(product, exclude), str)
    found = set(ids(expansion))
    for cell in expansion.cells:
        if cell.role is Role.SPECULATIVE:
            assert dataclasses.replace(cell, method=BASELINE).id in found


@unhurried
@given(axes, exclusions, axes)
def test_include_is_idempotent(product: Any, exclude: Any, more: Any) -> None:
    once = expand(matrix(product, exclude, (Inclusion(more),)), str)
    twice = expand(matrix(product, exclude, (Inclusion(more), Inclusion(more))), str)
    assert twice == once
    again = expand(matrix(product, exclude, (Inclusion(more), Inclusion(product))), str)
    assert set(ids(again)) == set(ids(expand(matrix(product, (), (Inclusion(more),)), str)))
    assert again.excluded == ()


@unhurried
@given(axes, exclusions, model_files, st.randoms(use_true_random=False))
def test_the_order_of_names_does_not_change_the_set_of_ids(
    product: Any, exclude: Any, models: Any, chance: Any
) -> None:
    def shuffled(names_: tuple[str, ...]) -> tuple[str, ...]:
        mixed = list(names_)
        chance.shuffle(mixed)
        return tuple(mixed)

    other = Axes(*(shuffled(getattr(product, axis)) for axis in AXES))
    before, after = (expand(matrix(one, exclude, models=models), str) for one in (product, other))
    assert set(ids(before)) == set(ids(after))
    assert set(before.not_formed) == set(after.not_formed)


@unhurried
@given(axes, exclusions, axes)
def test_more_exclusion_never_adds_and_include_never_takes_away(product: Any, exclude: Any, more: Any) -> None:
    bare = set(ids(expand(matrix(product), str)))
    less = set(ids(expand(matrix(product, exclude), str)))
    assert less <= bare
    assert less <= set(ids(expand(matrix(product, exclude, (Inclusion(more),)), str)))
