"""The library's one call: fine-tune a model towards the metric it is judged by."""

import time
from contextlib import nullcontext, suppress

import torch
from torch import nn
from tqdm import tqdm

from metricopt.errors import require_kind
from metricopt.finetuned import Finetuned
from metricopt.improvement import Data, Improvement
from metricopt.options import FinetuneOptions
from metricopt.outputs import Reads
from metricopt.process.seeding import KeptRandomState
from metricopt.process.threads import one_thread
from metricopt.tasks.checks.loss import require_loss
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
) -> Finetuned:
    """Find a small phi that improves a metric of a pre-trained model.

    The model is frozen and put in evaluation mode; its weights do not change. One
    query each goes to the untouched network, to the same network with the examples in
    another order, and to the method's proposal. The untouched network is returned if
    the proposal is worse, or if nothing shows that it is better on other data. Two
    more queries check a direction that the user declared.

    Args:
        model: the network theta, from inputs [n, ...] to outputs [n, C].
        train: examples the loss gradients come from; see `as_split` for the forms.
        observe: examples the metric is queried on; preferably not those of `train`.
        loss: `(outputs [n, C], targets [n]) -> scalar`, differentiable.
        metric: the black box: whatever `make_metric` accepts, such as the name of a
            metric, a function of `sklearn.metrics`, or a `Metric`.
        options: everything else.

    Returns:
        phi with what it gained and cost; `apply` puts it into the model.

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

        Every exception, including those of the model, the loss, the data and
        interrupts, has an attribute `partial`: a `Finetuned` with the best phi
        observed so far, or None before the first query.

    Source: the setting is that of Huang et al., CVPR 2021. Differs: see
        `MetricOptOutputs`, the method by default.
    """
    require_kind("model", model, nn.Module, "a torch.nn.Module")
    require_kind("options", options, FinetuneOptions, "a FinetuneOptions")
    require_loss(loss)
    black_box = options.metric_of(metric)
    hidden = None if options.progress else True  # None: hidden without a terminal
    improvement: Improvement | None = None
    started = time.perf_counter()
    bar = tqdm(total=options.queries, unit=" queries", disable=hidden)
    with bar, KeptRandomState():
        try:
            data = _read(model, train, observe, loss, options, black_box.reads)
            example = data.train.batch(slice(EXAMPLES))
            adapter = options.adapter_of(model, example, data.meaning)
            with one_thread() if _is_tiny(model, data) else nullcontext():
                improvement = Improvement(
                    adapter, data, black_box, options, started, bar.update
                )
                return improvement.run()
        except BaseException as error:
            _attach(error, None if improvement is None else improvement.best())
            raise


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
    return data.train.batch(slice(1)).ndim <= 2 and weights <= TINY


def _attach(error: BaseException, best: Finetuned | None) -> None:
    """Attach the best result so far to an exception."""
    # Some exceptions refuse new attributes; the exception itself matters more.
    with suppress(AttributeError):
        error.partial = best  # type: ignore[attr-defined]
        if best is not None:
            error.add_note(f"best so far, in `partial`: {best.summary()}")
