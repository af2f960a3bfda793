"""What every test starts from."""

import pytest
import torch


@pytest.fixture(autouse=True)
def same_threads():
    """Give every test the threads of the first: sums depend on their number."""
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
