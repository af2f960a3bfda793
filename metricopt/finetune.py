"""The library's one call: fine-tune a model towards the metric it is judged by."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from metricopt.adapters.auto import auto_adapter
from metricopt.adapters.base import NetworkAdapter
from metricopt.adapters.export import fingerprints
from metricopt.adapters.output_offsets import (
    OutputOffsets,
    Unmodulated,
    untouched_outputs,
)
from metricopt.call import FinetuneCall
from metricopt.confirmed_call import ConfirmedCall
from metricopt.errors import ConfigError, require_kind
from metricopt.finetuned import Finetuned
from metricopt.given import Given
from metricopt.journal.journal import Journal
from metricopt.journal.run_facts import run_facts
from metricopt.metrics.base import Metric
from metricopt.options import AUTO, FinetuneOptions
from metricopt.process.keeping import evaluating, kept_process, one_thread
from metricopt.process.query_bar import QueryBar
from metricopt.process.watch import Watch
from metricopt.reading.columns import columns_of
from metricopt.reading.constraints import read_metric
from metricopt.reading.inputs import call_on_copy, count_of, selected, tensors_of
from metricopt.reading.loss import require_loss
from metricopt.reading.meaning import Meaning
from metricopt.reading.metric import meaning_for, refuse_scores
from metricopt.reading.network import FEW, checked_network, first_run
from metricopt.reading.outputs import logits_of
from metricopt.reading.splits import inward_train
from metricopt.tasks.clusters import clusters_of, require_clusters
from metricopt.tasks.examples import Examples, GivenExamples, as_split, relabelled
from metricopt.tasks.row_losses import Loss

EXAMPLES = 4
"""Number of examples the automatic adapter is made with."""
LOOKED_AT = 256
"""Examples whose outputs decide what outputs mean."""
DEFAULTS = FinetuneOptions()
DEAR = 0.5
"""Share of the timeout that passes of the network over observe may take."""
TINY = 2**18
"""Most weights with which a network on vectors still runs in one thread."""
CPU = torch.device("cpu")


def finetune(
    model: nn.Module,
    *,
    train: GivenExamples,
    observe: GivenExamples,
    loss: Loss,
    metric: object,
    options: FinetuneOptions = DEFAULTS,
    **settings: Any,
) -> Finetuned:
    """Find a small phi that improves a metric of a pre-trained model.

    The model works in evaluation mode and frozen, and is as it was afterwards, also
    after an exception; so are the global random states. Both splits are moved to the
    device of the model, whole, unless they are a `LazySplit`. One query each goes to
    the untouched network, to the same network with the examples in another order, and
    to the method's proposal; up to two more check a direction that the user declared.
    phi is 0 if the proposal is worse, or if nothing shows that it is better on other
    data; see `no_harm` for methods that do not ask.

    Args:
        model: the network theta, from inputs [n, ...] to outputs [n, C].
        train: examples the loss gradients come from; see `as_split` for the forms.
        observe: examples the metric is queried on; preferably not those of `train`.
        loss: `(outputs [n, C], targets [n]) -> scalar`, differentiable.
        metric: the black box: whatever `make_metric` accepts, such as the name of a
            metric, a function of `sklearn.metrics`, or a `Metric`.
        options: everything else.
        **settings: fields of `FinetuneOptions` by name, instead of those in `options`,
            such as `queries=100` or `checkpoint="queries.txt"`.

    Returns:
        phi with what it gained and cost; `apply` puts it into the model. After Ctrl-C,
        the best phi observed so far, with a warning that says so.

    Raises:
        ConfigError: if a setting or name is not valid, or it is not clear whether
            outputs are probabilities.
        LossError: if the loss does not give a finite scalar with a finite gradient on
            one mini-batch; this is tried before the first query.
        DataError: if a split is empty or endless, the network does not run on it, or it
            holds one class where the metric needs two.
        MetricError: if the first query fails, more than a third of all do, or the
            metric declares the wrong direction.
        DivergedError: if the loss becomes non-finite.
        BudgetExceededError: if a user-defined method asks for too many queries.
        KeyboardInterrupt: if it comes before the first query, or a second time.

        Every exception, including those of the model, the loss and the data, has an
        attribute `partial`: a `Finetuned` with the best phi observed so far, or None
        before the first query.

    Source: the setting is that of Huang et al., CVPR 2021. Differs: see
        `MetricOptOutputs`, the method by default.
    """
    require_kind("model", model, nn.Module, "a torch.nn.Module")
    require_kind("options", options, FinetuneOptions, "a FinetuneOptions")
    model = checked_network(model)
    options = options.changed(**settings)
    require_loss(loss)

    def read() -> Given:
        return _read(model, (train, observe), loss, metric, options)

    # A loss may count its calls, and a resumed call needs the one that was given.
    kept = kept_process(loss) if isinstance(loss, nn.Module) else nullcontext()
    with kept:
        return improved(model, read, metric, options)


def improved(
    model: nn.Module,
    read: Callable[[], Given],
    metric: object,
    options: FinetuneOptions,
    *,
    partial: Callable[[Finetuned], Any] = lambda best: best,
) -> Finetuned:
    """Run a call on what is read; see `finetune`. The metric is as the user gave it.

    Of the best result so far, `partial` makes what is attached to an exception.
    """
    call: FinetuneCall | None = None
    total = options.queries
    with QueryBar(total, shown=options.progress) as bar, kept_process(model):
        watch = Watch(bar, total, callback=options.callback, timeout=options.timeout)
        try:
            theta = fingerprints(model)
            given = _clustered(read(), options.clusters)
            given = replace(_spared(model, given, options), theta=theta)
            made: type[FinetuneCall] = FinetuneCall
            if given.whole is not None:
                made = ConfirmedCall
            adapter = _adapter(model, given, options)
            with (
                one_thread() if _is_tiny(model, given) else nullcontext(),
                _journal(adapter, given, options, metric, watch) as journal,
            ):
                call = made(adapter, given, options, journal, watch=watch)
                _check_clusters(call, given, options.clusters)
                return call.run()
        except KeyboardInterrupt as error:
            found = None if call is None else call.interrupted()
            if found is None:
                attach(error, None)
                raise
            return found
        except BaseException as error:
            best = None if call is None else call.best()
            attach(error, None if best is None else partial(best))
            raise


def asked_metric(metric: object, options: FinetuneOptions) -> Metric:
    """Return the metric that a user gave, with what options say of it."""
    return read_metric(
        metric,
        options.constraints,
        objective=options.objective,
        confidence=options.confidence,
        higher_is_better=options.higher_is_better,
        low=options.low,
        high=options.high,
    )


def _read(
    model: nn.Module,
    splits: tuple[GivenExamples, GivenExamples],
    loss: Loss,
    metric: object,
    options: FinetuneOptions,
) -> Given:
    """Read metric and splits, and decide what the outputs of the model mean."""
    black_box = asked_metric(metric, options)
    device = next((weight.device for weight in model.parameters()), CPU)
    train, observe = (
        as_split(split, name=name, device=device)
        for split, name in zip(splits, ("train", "observe"), strict=True)
    )
    meaning = _meaning(model, observe, loss, black_box, options)
    if not meaning.are_targets_plain:
        targets = inward_train(train.targets, observe.targets, meaning)
        train = relabelled(train, targets)
        observe = relabelled(observe, meaning.inward_targets(observe.targets))
    return Given(train, observe, loss, black_box, meaning)


@torch.no_grad()
def _meaning(
    model: nn.Module,
    observe: Examples,
    loss: Loss,
    metric: Metric,
    options: FinetuneOptions,
) -> Meaning:
    """Return what the outputs of a model mean, judged by some of them.

    The model is put in evaluation mode. The metric says what it reads, the user what
    outputs are and where their classes are, or None to decide.

    Raises:
        ConfigError: if it is not clear, or not what the user says.
    """
    if metric.reads != "scores":
        refuse_scores(metric, loss, options.outputs)
        return Meaning("embeddings" if metric.reads == "embeddings" else "raw")
    some = observe.batch(slice(LOOKED_AT))
    few = selected(some, slice(FEW))
    evaluating(model)
    run = first_run(lambda: call_on_copy(model, some), model, few, "observe")
    given, layout = options.outputs, options.layout
    targets = observe.targets
    return meaning_for(
        metric, logits_of(run), targets, loss=loss, given=given, layout=layout
    )


@torch.no_grad()
def _spared(model: nn.Module, given: Given, options: FinetuneOptions) -> Given:
    """Return what was given, for offsets alone if the network takes too long.

    With offsets alone, the network runs once over each split.
    """
    automatic = options.adapter == AUTO and options.size is None
    automatic = automatic and options.sites is None
    shifted = given.meaning.kind not in ("embeddings", "raw")
    if options.timeout is None or not (automatic and shifted and given.network):
        return given
    some = given.observe.batch(slice(LOOKED_AT))
    began = time.perf_counter()
    call_on_copy(model, some)
    if torch.accelerator.is_available():
        torch.accelerator.synchronize()  # a GPU returns before it is done
    share = count_of(some) / len(given.observe)
    once = (time.perf_counter() - began) / share
    if once * options.queries <= DEAR * options.timeout:
        return given
    dear = (
        f"a pass of the network over observe takes about {once:.3g} s, which leaves no "
        f"time for {options.queries} of them in {options.timeout:g} s: phi are offsets "
        "of its outputs alone."
    )
    return replace(given, dear=dear)


def _adapter(
    model: nn.Module, given: Given, options: FinetuneOptions
) -> NetworkAdapter:
    """Return the adapter of a model, which has run on examples of train.

    Raises:
        ConfigError: if the adapter is for another model, or none can be made.
        DataError: if the model does not run on the inputs.
    """
    # Not the first ones: examples are often in the order of their classes.
    places = torch.linspace(0, len(given.train) - 1, EXAMPLES).long()
    own, example = options.adapter, given.train.batch(places)
    if isinstance(own, NetworkAdapter) and own.network is not model:
        raise ConfigError(
            "the adapter was made for another model; make one for this model"
        )

    def made() -> NetworkAdapter:
        if isinstance(own, NetworkAdapter):
            untouched_outputs(own, example)
            return own
        if given.dear:
            return OutputOffsets(Unmodulated(model, example), example, given.meaning)
        return auto_adapter(
            model,
            example,
            size=options.size,
            sites=options.sites,
            seed=options.seed,
            offsets=given.meaning,
        )

    return first_run(made, model, example, "train")


def _journal(
    adapter: NetworkAdapter,
    given: Given,
    options: FinetuneOptions,
    metric: object,
    watch: Watch,
) -> AbstractContextManager[Journal | None]:
    """Return the open checkpoint that the options name, if any.

    The metric is the one that the user gave.
    """
    if options.checkpoint is None:
        return nullcontext()
    splits = {"train": given.train, "observe": given.observe}
    if given.whole is not None:
        splits["whole"] = given.whole
    facts = run_facts(
        adapter, splits, options, loss=given.loss, metric=given.metric, given=metric
    )
    return Journal(options.checkpoint, facts, lambda: watch.ended_early)


def _is_tiny(model: nn.Module, given: Given) -> bool:
    """Return whether the whole model is too small for more than one thread."""
    weights = sum(weight.numel() for weight in model.parameters())
    inputs = tensors_of(given.train.batch(slice(1)))
    return weights <= TINY and all(part.ndim <= 2 for part in inputs)


def _clustered(given: Given, name: str | None) -> Given:
    """Return what was given, with the clusters of observe."""
    train = given.train if given.network else None
    return replace(given, clusters=clusters_of(given.observe, train, name))


def _check_clusters(call: FinetuneCall, given: Given, name: str | None) -> None:
    """Refuse clusters that say nothing of a gain, before the first query.

    Raises:
        ConfigError: if the examples they are named for are compared.
        DataError: if they are too few.
    """
    if name is None:
        return
    if call.task.compares:
        raise ConfigError(
            f"clusters={name!r} is for examples that are judged one by one; where they "
            "are compared with each other, leave it out: those of a class stay together"
        )
    every = columns_of(given.whole or given.observe)
    require_clusters(every, name, call.metric.columns)


def attach(error: BaseException, best: Any) -> None:
    """Attach the best result so far to an exception.

    Not by assignment, which some classes refuse: the exception itself matters more.
    """
    held = vars(error)
    held["partial"] = best
    if best is not None:
        note = f"best so far, in `partial`: {best.summary()}"
        held["__notes__"] = [*held.get("__notes__", ()), note]
