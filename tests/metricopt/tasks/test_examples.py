"""Examples of the user: every form gives the same split, all else a plain error."""

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from metricopt.tasks.examples import BATCH_SIZE, as_split
from metricopt.tasks.sampling import Split

CPU = torch.device("cpu")
INPUTS = torch.arange(2.0 * (BATCH_SIZE + 3)).view(-1, 2)
TARGETS = torch.arange(BATCH_SIZE + 3) % 3


class Augmented(Dataset):
    """Gives plain numbers as labels, and other inputs each time it is asked."""

    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        if index >= len(self):
            raise IndexError
        return torch.rand(2), index


class Stream(IterableDataset):
    def __init__(self, examples: int) -> None:
        self.examples = examples

    def __iter__(self):
        return zip(INPUTS[: self.examples], TARGETS[: self.examples], strict=True)


FORMS = {
    "pair": (INPUTS, TARGETS),
    "list": [INPUTS, TARGETS],
    "split": Split(INPUTS, TARGETS),
    "data set": TensorDataset(INPUTS, TARGETS),
    "stream": Stream(len(TARGETS)),
    "loader": DataLoader(TensorDataset(INPUTS, TARGETS), 50),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_split(form):
    split = as_split(FORMS[form], name="train", device=CPU)
    assert torch.equal(split.inputs, INPUTS)
    assert torch.equal(split.targets, TARGETS)


def test_batches_are_joined_and_augmentation_is_drawn_once():
    batches = DataLoader([(INPUTS[:9], TARGETS[:9])] * 2, None)
    split = as_split(batches, name="train", device=CPU)
    assert torch.equal(split.inputs, INPUTS[:9].repeat(2, 1))
    assert torch.equal(split.targets, TARGETS[:9].repeat(2))
    split = as_split(Augmented(), name="train", device=CPU)
    assert split.inputs.shape == (5, 2)
    assert torch.equal(split.targets, torch.arange(5))
