"""`gen_token`: who may have an access key by mail, and what becomes of a wish for one.

Anybody can ask in anybody's name. So the answer tells nothing about accounts, not even by the time it takes: the work
is done later, by the postman. A wish voids nothing, and it gives nothing to anybody but the mailbox that it names.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from email.message import EmailMessage

from paddlecloud.model.accounts import Registration
from paddlecloud.model.audit import Action
from paddlecloud.model.errors import ConfigError, ForbiddenError, InvalidError, NotFoundError
from paddlecloud.model.user import Role, User
from paddlecloud.server import mail, mailaddress
from paddlecloud.server.audit import HERE, AuditService, Origin
from paddlecloud.server.datadir import DataFolder
from paddlecloud.server.letters import KEY_HEADER, Letters, server_url
from paddlecloud.server.mailaddress import MailAddress
from paddlecloud.server.outbox import Ask, Outbox
from paddlecloud.server.postman import Postman
from paddlecloud.server.rates import Rates
from paddlecloud.server.settings import CLOSED, DOMAINS, AccountSettings, Settings
from paddlecloud.store.users import Users

MOST_KEYS = 10  # of a user, over which none is made by mail


class Registrations:
    def __init__(
        self,
        settings: AccountSettings,
        *,
        mailed: bool,
        outbox: Outbox,
        letters: Letters,
        users: Users,
        rates: Rates,
        audit: AuditService,
        clock: Callable[[], datetime],
    ) -> None:
        self._policy = settings.gen_token
        self._domains = _domains(settings)
        self._mailed = mailed
        self._outbox = outbox
        self._letters = letters
        self._users = users
        self._rates = rates
        self._audit = audit
        self._clock = clock

    def ask(self, email: str, origin: Origin) -> Registration:
        """Take a wish for a key; once this returns it is not lost."""
        if self._policy == CLOSED:
            raise ForbiddenError(f"this server gives no access keys by mail: {_INSTEAD}")
        to = mailaddress.parse(email)
        if to.tagged:
            raise InvalidError(
                f"email {str(to)!r} has a +, and one mailbox has any number of such addresses: write it without the + "
                "and what follows it",
                field="email",
            )
        if self._policy == DOMAINS and to.domain not in self._domains.values():
            raise ForbiddenError(
                f"this server gives access keys by mail only to addresses at {', '.join(self._domains)}: use such an "
                f"address, or {_INSTEAD}",
                field="email",
            )
        now = self._clock()
        self._rates.mail(to.user, origin.address, now)
        self._audit.record(Action.GEN_TOKEN, origin, target=to.user)
        self._outbox.ask(Ask(email=str(to), address=origin.address, request_id=origin.request_id), now)
        return Registration(user=to.user, mailed=self._mailed)

    def write(self, ask: Ask) -> EmailMessage | None:
        """The letter that answers a wish; None: there is none for a disabled user."""
        to = mailaddress.parse(ask.email)
        origin = Origin(address=ask.address, request_id=ask.request_id)
        user = self._user(to, origin)
        now, keys = self._clock(), len(self._users.keys(user.name))
        if user.disabled:
            self._audit.record(Action.GEN_TOKEN_REFUSED, origin, target=user.name, detail="disabled")
            return None
        if user.role is Role.ADMIN:
            self._audit.record(Action.GEN_TOKEN_REFUSED, origin, target=user.name, detail="an admin")
            return self._letters.admin(to, now)
        if keys >= MOST_KEYS:
            self._audit.record(Action.GEN_TOKEN_REFUSED, origin, target=user.name, detail=f"has {keys} keys")
            return self._letters.no_more(to, keys, now)
        key, sk = self._users.add_key(user.name, now)
        self._audit.record(Action.KEY_CREATE, origin, target=key.ak, detail=f"of {user.name}, by mail")
        return self._letters.key(to, key.ak, sk, now)

    def sent(self, letter: EmailMessage) -> None:
        self._audit.record(Action.MAIL_SENT, HERE, target=letter["To"], detail=_brings(letter))

    def refused(self, letter: EmailMessage, why: str) -> None:
        """The mailbox cannot be reached, so nobody will ever have the key."""
        self._audit.record(Action.MAIL_REFUSED, HERE, target=letter["To"], detail=why)
        ak = letter[KEY_HEADER]
        if ak is None:
            return
        try:
            with self._audit.beside(Action.KEY_REVOKE, HERE, target=ak, detail="its letter could not be delivered"):
                self._users.revoke_key(ak, None)
        except NotFoundError:
            return  # its owner was quicker

    def _user(self, to: MailAddress, origin: Origin) -> User:
        try:
            return self._users.get(to.user)
        except NotFoundError:
            with self._audit.beside(Action.USER_ADD, origin, target=to.user, detail="by mail"):
                return self._users.add(to.user, Role.USER, None, self._clock())


_INSTEAD = (
    "ask its operator to type `paddlecloud user add NAME` and `paddlecloud key create --user NAME`; ak and sk then go "
    "into [main] of client.conf, or to `paddlecloud login --ak AK`"
)


def _brings(letter: EmailMessage) -> str:
    return f"brings {letter[KEY_HEADER]}" if letter[KEY_HEADER] else "brings no key"


def _domains(settings: AccountSettings) -> dict[str, str]:
    """The domains that may ask, as the operator writes them and as the DNS has them."""
    found: dict[str, str] = {}
    for domain in settings.mail_domains:
        try:
            found[domain] = mailaddress.parse_domain(domain.removeprefix("@"))
        except UnicodeError:
            raise ConfigError(
                f"accounts.mail_domains: {domain!r} is no domain: write it as lab.example",
                field="accounts.mail_domains",
            ) from None
    if settings.gen_token == DOMAINS and not found:
        raise ConfigError(
            'accounts.gen_token = "domains" needs accounts.mail_domains, such as ["lab.example"]',
            field="accounts.mail_domains",
        )
    return found


def open_registrations(
    settings: Settings,
    folder: DataFolder,
    users: Users,
    rates: Rates,
    audit: AuditService,
    clock: Callable[[], datetime],
) -> tuple[Registrations, Postman]:
    """Those who ask, and who brings them what they get."""
    outbox, smtp = Outbox(folder.outbox), mail.configured(settings.mail)
    registrations = Registrations(
        settings.accounts,
        mailed=smtp is not None,
        outbox=outbox,
        letters=Letters(
            sender=settings.mail.sender, url=server_url(settings, folder.last_port or settings.server.port)
        ),
        users=users,
        rates=rates,
        audit=audit,
        clock=clock,
    )
    postman = Postman(
        outbox, smtp, write=registrations.write, on_sent=registrations.sent, on_refused=registrations.refused
    )
    return registrations, postman
