"""L2T-DLF, learning to teach with dynamic loss functions.

A teacher sees the state of a student and gives it the loss of its next steps. It learns
by the gradient of the student's accuracy on the observe split, smoothed, back through
the student's own steps. Then it is frozen, and teaches a last student.

Source: Wu et al., NeurIPS 2018; its published demonstration was read. Differs: the
teacher learns from windows of ten plain steps, each by itself, and from three students;
a student's state is seen once in a window. See `class_correlation` for the loss.
"""

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from baselines.learned_losses.dynamic_loss import (
    LossParameters,
    StudentState,
    Teacher,
    Window,
    dynamic_loss,
    true_probability,
)
from baselines.network_methods.contract import (
    NETWORK_METHODS,
    Assignment,
    NetworkMethod,
    NetworkResult,
    Notes,
)
from baselines.network_methods.snapshots import Snapshots
from baselines.training.children import siblings
from baselines.training.loop import Hooks
from baselines.training.prediction import predict
from baselines.training.selection import Epoch
from baselines.validation import labels
from metricopt.errors import DivergedError, require_ranges
from metricopt.process.seeding import drawn_seed, globally_seeded


@NETWORK_METHODS.register("l2t-dlf")
@dataclass(frozen=True, kw_only=True)
class LearningToTeach(NetworkMethod):
    """Train with a loss that a teacher gives, step by step.

    The teacher sees labels of the observe split, not the metric; the metric is queried
    there after every epoch of the last student. The notes give the true probability on
    held-out examples after each window, by student, and the loss of the last student at
    nine times. Checkpoints are of the last student alone: a method that was killed
    teaches the teacher again.

    Attributes:
        students: that the teacher learns from, each with random weights of its own.
        teaching_epochs: epochs of each of them; 0 for the length of the training.
        window: steps between two states; gradients go back through these steps.
        student_rate: rate of their plain steps.
        held_out: examples of the observe split that a state is seen on.
        slots: number of slots of the teacher's attention.
        literal: whether the loss is the published one, through a sigmoid.
        teacher_rate: rate of the teacher's Adam. Few steps at the usual rate leave it
            where it begins, near cross-entropy.
    """

    students: int = 3
    teaching_epochs: int = 0
    window: int = 10
    student_rate: float = 0.1
    held_out: int = 256
    slots: int = 10
    literal: bool = False
    teacher_rate: float = 1e-3

    def __post_init__(self) -> None:
        require_ranges(
            "L2T-DLF",
            vars(self),
            teacher_rate="> 0",
            students=">= 1",
            teaching_epochs=">= 0",
            window=">= 1",
            student_rate="> 0",
            held_out=">= 1",
            slots=">= 1",
        )

    def _train(self, given: Assignment) -> NetworkResult:
        device, generator = given.batches.targets.device, given.generator
        network = copy.deepcopy(given.network).to(device)
        with globally_seeded(drawn_seed(generator)):
            teacher = Teacher(given.class_count(), self.slots).to(device)
        school = _School(self, teacher, given)
        epochs = self.teaching_epochs or given.training.epochs
        with globally_seeded(drawn_seed(generator)):
            students = siblings(network, self.students + 1)[1:]
        courses = [school.course(student, epochs) for student in students]
        if not any(courses):
            raise DivergedError(f"all students of the teacher diverged: {school.error}")
        lesson = _Lesson(self, school, teacher.requires_grad_(False), network)
        run = given.run(network, lesson.loss, given.metric_score())
        best = given.finish(run, lesson)
        notes = lesson.notes(run.steps) | best.noted("observe_cost")
        notes |= {f"student_{i}": course for i, course in enumerate(courses)}
        return given.result(network, run.steps + school.steps, notes)


class _School:
    """A teacher that learns from students.

    Attributes:
        steps: taken on the weights of students so far.
        error: why the latest student diverged, if any did.
    """

    def __init__(
        self, settings: LearningToTeach, teacher: Teacher, given: Assignment
    ) -> None:
        self.settings, self.teacher, self.batches = settings, teacher, given.batches
        self.observe, self.generator = given.validation.observe, given.generator
        rate = settings.teacher_rate
        self.optimizer = torch.optim.Adam(teacher.parameters(), lr=rate)
        self.steps, self.error = 0, ""

    def held_out(self) -> tuple[Tensor, Tensor]:
        """Return examples drawn from the observe split."""
        targets = labels(self.observe)
        order = torch.randperm(len(targets), generator=self.generator)
        places = order[: self.settings.held_out].to(targets.device)
        return self.observe.batch(places), targets[places]

    def course(self, student: nn.Module, epochs: int) -> list[float]:
        """Return what `teach` does; empty if the student diverged."""
        try:
            return self.teach(student, epochs)
        except DivergedError as error:
            self.error = str(error)
            return []

    def teach(self, student: nn.Module, epochs: int) -> list[float]:
        """Train a student, and the teacher with it.

        Returns:
            The true probability on held-out examples after every window.

        Raises:
            DivergedError: if the student's loss is not finite.
        """
        state, course, losses = StudentState(), list[float](), list[float]()
        of_epoch = self.batches.steps_per_epoch
        steps, done = epochs * of_epoch, 0
        while done < steps:
            held, answers = self.held_out()
            state.hold_out(predict(student, held), answers)
            known = state.vector(done / steps).to(held.device)
            window = Window(
                student,
                self.teacher,
                self.settings.student_rate,
                literal=self.settings.literal,
            )
            count = min(self.settings.window, steps - done)
            for inputs, targets in self.batches.draw(count, self.generator):
                seed = drawn_seed(self.generator)
                loss, outputs = window.step(inputs, targets, known, seed)
                state.train(outputs, targets)
                done, self.steps = done + 1, self.steps + 1
                if not bool(loss.isfinite()):
                    number = -(-done // of_epoch)
                    raise DivergedError(
                        f"the loss became {float(loss)} in epoch {number} of {epochs}"
                    )
                losses.append(float(loss))
                if done % of_epoch == 0:
                    self._show(done // of_epoch, epochs, losses[-of_epoch:])
            held, answers = self.held_out()
            self._learn(window.hypergradient(held, answers))
            course.append(float(true_probability(predict(student, held), answers)))
        return course

    def _show(self, number: int, epochs: int, losses: list[float]) -> None:
        if self.settings.on_epoch is not None:
            self.settings.on_epoch(Epoch(number, epochs, sum(losses) / len(losses)))

    def _learn(self, gradients: list[Tensor]) -> None:
        if not all(bool(part.isfinite().all()) for part in gradients):
            return
        weights = self.teacher.parameters()
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.grad = gradient
        self.optimizer.step()


class _Lesson(Hooks):
    """The frozen teacher's loss for the last student."""

    parameters: LossParameters

    def __init__(
        self,
        settings: LearningToTeach,
        school: _School,
        teacher: Teacher,
        network: nn.Module,
    ) -> None:
        super().__init__(settings.on_epoch)
        self.settings, self.network = settings, network
        self.school, self.teacher = school, teacher
        self.seen, self.snapshots = StudentState(), Snapshots()

    def state(self) -> dict[str, Any]:
        """Return the student's state, and the loss that it has."""
        return {
            "student": self.seen.state(),
            "loss": tuple(self.parameters),
            "snapshots": self.snapshots.taken,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take back what `state` returned."""
        self.seen.restore(state["student"])
        self.snapshots.taken = state["snapshots"]
        device = next(self.network.parameters()).device
        self.parameters = LossParameters(*(part.to(device) for part in state["loss"]))

    def before_step(self, step: int, steps: int) -> None:
        """See the student's state at the beginning of a window."""
        if step % self.settings.window:
            return
        held, answers = self.school.held_out()
        self.seen.hold_out(predict(self.network, held), answers)
        known = self.seen.vector(step / steps).to(held.device)
        self.parameters = self.teacher(known)
        self.snapshots.take(step, steps, self.parameters.weights)
        self.network.train()

    def notes(self, steps: int) -> Notes:
        """Return what the loss was at several steps, and after the last one."""
        phi, offset = self.parameters
        self.snapshots.take(steps, steps, phi)
        found = self.snapshots.notes("phi")
        if self.settings.literal:  # elsewhere the offset has no effect
            found["offset"] = float(offset)
        return found

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the loss that the teacher gives at present."""
        self.seen.train(outputs, targets)
        literal = self.settings.literal
        return dynamic_loss(outputs, targets, self.parameters, literal=literal)
