"""The library's one call: fine-tune a model towards the metric it is judged by."""

import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn

from metricopt.adapters.network_adapter import NetworkAdapter
from metricopt.call import Call, Data
from metricopt.errors import require_kind
from metricopt.finetuned import Finetuned
from metricopt.improvement import Improvement
from metricopt.journal.journal import Journal
from metricopt.journal.run_facts import run_facts
from metricopt.metrics.base import Metric
from metricopt.options import FinetuneOptions
from metricopt.process.keeping import KeptProcess
from metricopt.process.query_bar import QueryBar
from metricopt.process.threads import one_thread
from metricopt.reading.inputs import tensors_of
from metricopt.reading.loss import require_loss
from metricopt.reading.network import checked_network
from metricopt.reading.outputs import Reads
from metricopt.tasks.examples import GivenExamples, as_split, relabelled
from metricopt.tasks.row_losses import Loss

EXAMPLES = 4
"""Number of examples the automatic adapter is made with."""
DEFAULTS = FinetuneOptions()
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
        MetricError: if the metric fails, or declares the wrong direction.
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
    improvement: Improvement | None = None
    started = time.perf_counter()
    with QueryBar(options.queries, shown=options.progress) as bar, KeptProcess(model):
        try:
            black_box = options.metric_of(metric)
            data = _read(model, train, observe, loss, options, black_box.reads)
            example = data.train.batch(slice(EXAMPLES))
            adapter = options.adapter_of(model, example, data.meaning)
            tiny = _is_tiny(model, data)
            with (
                one_thread() if tiny else nullcontext(),
                _journal(adapter, data, black_box, options, metric) as journal,
            ):
                call = Call(started, bar.update, journal)
                improvement = Improvement(adapter, data, black_box, options, call)
                return improvement.run()
        except KeyboardInterrupt as error:
            found = None if improvement is None else improvement.interrupted()
            if found is None:
                _attach(error, None)
                raise
            return found
        except BaseException as error:
            _attach(error, None if improvement is None else improvement.best())
            raise


def _journal(
    adapter: NetworkAdapter,
    data: Data,
    metric: Metric,
    options: FinetuneOptions,
    given: object,
) -> AbstractContextManager[Journal | None]:
    """Return the open checkpoint that the options name, if any."""
    if options.checkpoint is None:
        return nullcontext()
    splits = {"train": data.train, "observe": data.observe}
    facts = run_facts(
        adapter, splits, options, loss=data.loss, metric=metric, given=given
    )
    return Journal(options.checkpoint, facts)


def _read(
    model: nn.Module,
    train: GivenExamples,
    observe: GivenExamples,
    loss: Loss,
    options: FinetuneOptions,
    reads: Reads,
) -> Data:
    """Read both splits, and decide what the outputs of the model mean on them."""
    device = next((weight.device for weight in model.parameters()), CPU)
    first = as_split(train, name="train", device=device)
    second = as_split(observe, name="observe", device=device)
    meaning = options.meaning_of(model, second, loss, reads)
    if not meaning.are_targets_plain:
        first, second = (
            relabelled(split, meaning.inward_targets(split.targets))
            for split in (first, second)
        )
    return Data(first, second, loss, meaning)


def _is_tiny(model: nn.Module, data: Data) -> bool:
    """Return whether the whole model is too small for more than one thread."""
    weights = sum(weight.numel() for weight in model.parameters())
    inputs = tensors_of(data.train.batch(slice(1)))
    return weights <= TINY and all(part.ndim <= 2 for part in inputs)


def _attach(error: BaseException, best: Finetuned | None) -> None:
    """Attach the best result so far to an exception.

    Not by assignment, which some classes refuse: the exception itself matters more.
    """
    held = vars(error)
    held["partial"] = best
    if best is not None:
        note = f"best so far, in `partial`: {best.summary()}"
        held["__notes__"] = [*held.get("__notes__", ()), note]
