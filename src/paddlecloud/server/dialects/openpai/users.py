"""Users as OpenPAI's API has them: admins add, change and remove them, everybody changes what is their own.

A user who is removed is disabled: their jobs and files stay theirs, and nobody else can take the name over.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response
from starlette.concurrency import run_in_threadpool

from paddlecloud.model.accounts import LoginRequest, UserChange, UserRequest
from paddlecloud.model.audit import Action
from paddlecloud.model.errors import ConflictError, NotFoundError, RateError, UnauthenticatedError
from paddlecloud.model.group import ADMINS, EVERYBODY
from paddlecloud.model.user import Account, Role, Scope
from paddlecloud.server.audit import Origin
from paddlecloud.server.auth import Identity
from paddlecloud.server.caller import Called, FromWhere
from paddlecloud.server.dialects.openpai import people, refusals
from paddlecloud.server.dialects.openpai.addresses import ROOT
from paddlecloud.server.dialects.openpai.places import folders_of, pools
from paddlecloud.server.dialects.openpai.route import (
    Caller,
    PaiRoute,
    Sender,
    Sent,
    Visitor,
    json_answer,
    said,
    text_of,
)
from paddlecloud.server.services import Services

router = APIRouter(prefix=ROOT, route_class=PaiRoute, default_response_class=Response, include_in_schema=False)

_V1, _V2 = "/api/v1/user", "/api/v2/users"
_OF_DATA = ("username", "email", "virtualCluster", "admin", "password", "extension")


@router.get(_V1)
@router.get(_V2)
def list_users(caller: Caller, called: Called) -> Response:
    """All users for an admin, else oneself: who is on a server is nobody else's business."""
    accounts = called.accounts.users() if caller.admin else [called.accounts.get(caller.identity, caller.user.name)]
    return json_answer([_shown(called, account) for account in accounts if not account.disabled])


@router.get(f"{_V1}/{{name}}")
@router.get(f"{_V2}/{{name}}")
def get_user(name: str, caller: Caller, called: Called) -> Response:
    if name != caller.user.name and not caller.admin:
        raise refusals.forbidden(f"User {caller.user.name} may see only themselves: others are for an admin.")
    return json_answer(_shown(called, _account(called, caller.identity, name, status=400)))


@router.post(_V1)
@router.post(_V2)
def add_user(caller: Sender, called: Called, sent: Sent, origin: FromWhere) -> Response:
    caller.need_admin()
    fields = sent.fields()
    name = text_of(fields, "username")
    asked = UserRequest(
        name=name,
        role=Role.ADMIN if _truth(fields, "admin") else Role.USER,
        password=text_of(fields, "password"),
        email=text_of(fields, "email", ""),
        extension=_mapping(fields, "extension") or {},
    )
    _check_pools(called, name, fields)
    try:
        with called.audit.beside(Action.USER_ADD, origin, user=caller.user.name, target=name, detail=asked.role.value):
            called.accounts.add(asked)
    except ConflictError:
        raise refusals.Refusal(409, "ConflictUserError", f"User name {name} already exists.") from None
    return said("User is created successfully", 201)


@router.put(_V1)
@router.put(_V2)
def change_user(caller: Sender, called: Called, sent: Sent, origin: FromWhere) -> Response:
    caller.need_admin()
    fields = sent.fields()
    told = _mapping(fields, "data") or {}
    if not _truth(fields, "patch"):
        _need_all(told)
    name = text_of(told, "username")
    _change(called, caller, name, told, origin)
    return said(f"update user {name} successfully", 201)


@router.put(f"{_V2}/me")
async def change_oneself(caller: Sender, called: Called, sent: Sent, origin: FromWhere) -> Response:
    """A new password needs the old one: a token alone does not let anybody take an account over."""
    caller.need_person()
    told = _mapping(sent.fields(), "data") or {}
    name = text_of(told, "username", caller.user.name)
    if name != caller.user.name:
        raise refusals.forbidden("Can't update other user's data")
    new = told.get("newPassword")
    if new is not None:
        await _check_password(called, name, text_of(told, "oldPassword"), origin)
    change: dict[str, Any] = {key: told[key] for key in ("email", "extension") if key in told}
    if new is not None:
        change["password"] = new
    await run_in_threadpool(_change, called, caller, name, change, origin)
    return said(f"update user {name} successfully", 201)


async def _check_password(called: Services, name: str, password: str, origin: Origin) -> None:
    try:
        await called.logins.check(LoginRequest(name=name, password=password), origin)
    except RateError:
        raise
    except UnauthenticatedError:
        raise refusals.Refusal(400, "IncorrectPasswordError", "The old password is incorrect.") from None


@router.delete(f"{_V1}/{{name}}")
@router.delete(f"{_V2}/{{name}}")
def remove_user(name: str, caller: Caller, called: Called, origin: FromWhere) -> Response:
    caller.need_admin()
    if _account(called, caller.identity, name).role is Role.ADMIN:
        raise refusals.Refusal(403, "RemoveAdminError", f"Admin {name} is not allowed to remove.")
    _change(called, caller, name, {"disabled": True}, origin)
    return said("user is removed successfully")


@router.put(f"{_V2}/{{name}}/group")
def join_group(name: str, caller: Sender, called: Called, sent: Sent, origin: FromWhere) -> Response:
    return _membership(called, caller, name, text_of(sent.fields(), "groupname"), origin, member=True)


@router.delete(f"{_V2}/{{name}}/group")
def leave_group(name: str, caller: Sender, called: Called, sent: Sent, origin: FromWhere) -> Response:
    return _membership(called, caller, name, text_of(sent.fields(), "groupname"), origin, member=False)


def _membership(called: Services, caller: Visitor, name: str, group: str, origin: Origin, *, member: bool) -> Response:
    """Everybody is in `default`; who is in `admin` is a matter of roles."""
    caller.need_admin()
    _account(called, caller.identity, name)
    if group == ADMINS:
        _change(called, caller, name, {"admin": member}, origin)
    elif group == EVERYBODY and not member:
        raise refusals.forbidden(f"Everybody is in the group {EVERYBODY}.")
    elif group != EVERYBODY:
        act = called.groups.join if member else called.groups.leave
        try:
            act(caller.identity, group, name, origin)
        except NotFoundError:
            raise refusals.no_group(group[:80]) from None
    return said(f"update user {name} successfully", 201)


@router.put(f"{_V2}/{{name}}/grouplist")
def set_groups(name: str, caller: Sender, called: Called, sent: Sent, origin: FromWhere) -> Response:
    caller.need_admin()
    wanted = _names(sent.fields(), "grouplist")
    account = _account(called, caller.identity, name)
    try:
        called.groups.set_groups(caller.identity, name, wanted, origin)
    except NotFoundError as error:
        raise refusals.Refusal(404, "NoGroupError", error.message) from None
    if (ADMINS in wanted) != (account.role is Role.ADMIN):
        _change(called, caller, name, {"admin": ADMINS in wanted}, origin)
    return said(f"update user {name} successfully", 201)


@router.put(f"{_V1}/{{name}}/{{what}}")
@router.put(f"{_V2}/{{name}}/{{what}}")
def change_one_thing(name: str, what: str, caller: Sender, called: Called, sent: Sent, origin: FromWhere) -> Response:
    """The older addresses, one for each field; the extension is also its user's own."""
    fields = sent.fields()
    own = what == "extension" and name == caller.user.name
    if own:
        caller.need_person()
    else:
        caller.need_admin()
    known = {"extension": "extension", "email": "email", "admin": "admin", "virtualcluster": "virtualCluster"}
    told: dict[str, Any]
    if what == "password":
        told = {"password": text_of(fields, "newPassword", fields.get("password"))}
    elif what in known:
        told = {known[what]: fields.get(known[what])}
    else:
        raise refusals.no_api(f"{ROOT}{_V2}/{name[:80]}/{what[:80]}")
    _change(called, caller, name, told, origin)
    return said(f"update user {name} successfully", 201)


def _change(called: Services, caller: Visitor, name: str, told: dict[str, Any], origin: Origin) -> None:
    _account(called, caller.identity, name)
    if "virtualCluster" in told:
        _check_pools(called, name, told)
    password = told.get("password")
    change = UserChange(
        role=None if told.get("admin") is None else Role.ADMIN if _truth(told, "admin") else Role.USER,
        password=None if password is None else text_of(told, "password"),
        email=None if told.get("email") is None else text_of(told, "email"),
        extension=_mapping(told, "extension"),
        disabled=told.get("disabled"),
    )
    changed = ", ".join(field for field in told if field not in ("username", "virtualCluster"))
    with called.audit.beside(Action.USER_CHANGE, origin, user=caller.user.name, target=name, detail=changed):
        called.accounts.change(caller.identity, name, change)


def _account(called: Services, identity: Identity, name: str, status: int = 404) -> Account:
    """A user who is not disabled: one that is was removed, as far as OpenPAI's clients know."""
    try:
        found = called.accounts.get(identity, name)
    except NotFoundError:
        raise refusals.no_user(name[:80], status) from None
    if found.disabled:
        raise refusals.no_user(name[:80], status)
    return found


def _shown(called: Services, account: Account) -> dict[str, Any]:
    admin = account.role is Role.ADMIN
    identity = Identity(user=account, scope=Scope.ADMIN if admin else Scope.WRITE)
    storages = [folder.name for folder in folders_of(called, identity)]
    return people.user(
        account, called.groups.names_of(account), pools(called, None if admin else account.name), storages
    )


def _check_pools(called: Services, name: str, told: dict[str, Any]) -> None:
    """Virtual clusters are given by groups and by the config: what a user would have anyway may be named."""
    given = told.get("virtualCluster")
    wanted = [one for one in given.split(",") if one] if isinstance(given, str) else _names(told, "virtualCluster")
    for one in wanted:
        if one not in pools(called):
            raise refusals.no_virtual_cluster(one[:80], 400)
        if one not in pools(called, name):
            raise refusals.invalid(
                f"Virtual cluster {one} is not open to {name}: give its queue to a group (PUT /api/v2/groups), and "
                f"have {name} be in it (PUT /api/v2/users/{name}/group)."
            )


def _need_all(told: dict[str, Any]) -> None:
    for field in _OF_DATA:
        if field not in told:
            raise refusals.invalid(f'"data.{field}" is required where patch is false')


def _truth(fields: dict[str, Any], name: str) -> bool:
    value = fields.get(name, False)
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if value is None or value == "":
        return False
    if not isinstance(value, bool):
        raise refusals.invalid(f'"{name}" must be a boolean')
    return value


def _mapping(fields: dict[str, Any], name: str) -> dict[str, Any] | None:
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, dict):
        raise refusals.invalid(f'"{name}" must be an object')
    return value


def _names(fields: dict[str, Any], name: str) -> list[str]:
    value = fields.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise refusals.invalid(f'"{name}" must be a list of names')
    return value
