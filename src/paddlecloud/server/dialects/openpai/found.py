"""The job that a caller means, of those that they may see: another user's is as good as none."""

from __future__ import annotations

from paddlecloud.model.errors import NotFoundError
from paddlecloud.model.job import RoleSpec
from paddlecloud.model.user import Role, User
from paddlecloud.model.views import JobDetail
from paddlecloud.server.dialects.openpai import refusals
from paddlecloud.server.dialects.openpai.route import Visitor
from paddlecloud.server.services import Services
from paddlecloud.store.attempts import Span


class Found:
    """A job by its user and the name that a list calls it by. `visitor` None: a guest, where guests see everything."""

    def __init__(
        self, called: Services, visitor: Visitor | None, user: str, name: str, *, called_by: str | None = None
    ) -> None:
        self._called = called
        self.user = user
        self.name = name
        self.frame = f"{user}~{name}" if called_by is None else called_by
        self._who = _nobody(called) if visitor is None else visitor.user
        self._everyone = visitor is None or visitor.admin
        found = self._find()
        if found is None:
            raise refusals.no_job(self.frame)
        self.id = found
        self.detail = called.jobs.detail(self._who, found, everyone=self._everyone)
        self.tags = called.openpai.tags([found]).get(found, ())

    def _find(self) -> str | None:
        if not (self._everyone or self.user == self._who.name):
            return None
        found = self._called.listing.find(self.user, self.name)
        if found is not None:
            return found
        try:
            job = self._called.jobs.get(self._who, self.name, everyone=self._everyone)
        except NotFoundError:
            return None
        return job.id if job.user == self.user else None

    def attempt(self, number: str) -> tuple[JobDetail, Span | None]:
        """One attempt of it, as OpenPAI counts them; the first is there before it has begun."""
        spans = self._called.records.attempts(self.id)
        wanted = int(number) + 1 if _is_number(number) else 0
        span = next((span for span in spans if span.attempt == wanted), None)
        if span is None:
            if wanted == 1 and not spans:
                return self.detail, None
            raise refusals.Refusal(404, "NoJobError", f"Attempt {number[:20]} of job {self.frame} is not found.")
        return self._at(span), span

    def attempts(self) -> list[tuple[JobDetail, Span | None]]:
        """All of its attempts, newest first."""
        spans = self._called.records.attempts(self.id)
        return [(self._at(span), span) for span in reversed(spans)] or [(self.detail, None)]

    def role(self, name: str, index: str) -> tuple[RoleSpec, int]:
        for role in self.detail.job.spec.roles:
            if role.name == name and _is_number(index) and int(index) < role.count:
                return role, int(index)
        raise refusals.Refusal(404, "NoJobError", f"Task {name[:80]}-{index[:20]} of job {self.frame} is not found.")

    def _at(self, span: Span) -> JobDetail:
        if span.attempt == self.detail.job.attempt:
            return self.detail
        return JobDetail(job=self.detail.job, tasks=tuple(self._called.records.tasks_of(span.handle)))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 9


def _nobody(called: Services) -> User:
    return User(name="", role=Role.USER, created_at=called.clock())
