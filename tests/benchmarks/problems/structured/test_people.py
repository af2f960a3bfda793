"""People as a network is trained on them: images and joints move together."""

import pytest
import torch

from benchmarks.data.registry import find_any
from benchmarks.problems.structured import people as module
from benchmarks.problems.structured.people import People, PeopleBatches
from metricopt.process.seeding import make_generator
from metricopt.structured.poses import labelled


@pytest.fixture(scope="module")
def people():
    data = find_any("drawn-people").load(offline=True)
    return People(data, torch.arange(12), (64, 48))


def test_people_are_as_they_are(people):
    images = people.batch(slice(None))
    assert images.shape == (12, 3, 64, 48)
    assert torch.equal(people.batch(torch.tensor([3, 1])), images[[3, 1]])
    assert people.targets.shape == (12, 15, 3) and labelled(people.targets).all()
    source = find_any("drawn-people").load(offline=True)
    # Cells of 4 pixels; the box is the whole image at its own size.
    torch.testing.assert_close(
        people.targets[:, :-1, :2], source.joints[:12, :, :2] / 4
    )
    torch.testing.assert_close(people.targets[:, -1, 0], source.references[:12] / 4)
    torch.testing.assert_close(people.targets[:, -1, 1], source.areas[:12] / 16)
    assert len(people.first(5)) == 5 and people.pixels(0).shape == (64, 48, 3)


def red_share(image, pose, joint):
    """How much redder than blue an image [3, H, W] is near a joint."""
    x, y = (4 * pose[joint, :2]).round().long().tolist()
    rows, columns = slice(max(y - 1, 0), y + 2), slice(max(x - 1, 0), x + 2)
    return (image[0] - image[2])[rows, columns].mean().item()


def test_joints_move_with_the_image(people):
    """Left limbs are drawn red and right ones blue, mirrored or not."""
    names, seen = people.skeleton.joints, 0
    generator = make_generator("changed")
    images, poses = people.changed(torch.arange(12), generator)
    assert images.shape == (12, 3, 64, 48)
    assert not torch.allclose(poses, people.targets)
    for image, pose in zip(images, poses, strict=True):
        for knee, other in (("l_knee", "r_knee"), ("l_elbow", "r_elbow")):
            left, right = names.index(knee), names.index(other)
            if pose[left, 2] and pose[right, 2]:
                # Once mirrored, what was drawn as the left is the right.
                difference = red_share(image, pose, left) - red_share(
                    image, pose, right
                )
                seen += abs(difference) > 0.2
    assert seen > 15


def test_a_mirrored_person_keeps_left_left(people, monkeypatch):
    monkeypatch.setattr(module, "TURNED", 0.0)
    monkeypatch.setattr(module, "ZOOM", 0.0)
    _, poses = people.changed(torch.arange(12), make_generator("mirror"))
    same = torch.isclose(poses, people.targets, atol=1e-4).flatten(1).all(1)
    assert 0 < same.sum() < 12
    mirrored = people.targets[:, [*people.skeleton.mirrored.tolist(), 14]]
    mirrored = mirrored.clone()
    mirrored[:, :-1, 0] = 12 - mirrored[:, :-1, 0]
    torch.testing.assert_close(poses[~same], mirrored[~same], atol=1e-4, rtol=0)


def test_joints_that_leave_the_image_do_not_count(people, monkeypatch):
    monkeypatch.setattr(module, "ZOOM", 1.5)
    _, poses = people.changed(torch.arange(12), make_generator("zoom"))
    known, places = labelled(poses), poses[:, :-1, :2]
    inside = ((places >= 0) & (places < torch.tensor([12.0, 16.0]))).all(-1)
    assert not inside.all()
    assert torch.equal(known, inside)


def test_mini_batches_have_the_changed_joints(people):
    batches = PeopleBatches(people, 4)
    found = list(batches.epoch(make_generator("epoch")))
    assert len(found) == batches.steps_per_epoch == 3
    again = list(batches.epoch(make_generator("epoch")))
    for (images, poses), (others, same) in zip(found, again, strict=True):
        assert images.shape == (4, 3, 64, 48) and poses.shape == (4, 15, 3)
        assert torch.equal(images, others) and torch.equal(poses, same)
    drawn = batches.draw(4, make_generator("epoch"))
    assert torch.equal(next(drawn)[0], found[0][0])
