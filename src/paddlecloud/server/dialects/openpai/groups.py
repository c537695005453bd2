"""Groups as OpenPAI's API has them: `extension.acls.virtualClusters` are the queues that a group of ours opens."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from paddlecloud.model.errors import ConflictError, NotFoundError
from paddlecloud.model.group import ADMINS, COMPUTED, Group, GroupChange, GroupRequest
from paddlecloud.server.audit import Origin
from paddlecloud.server.caller import Called, FromWhere
from paddlecloud.server.dialects.openpai import people, refusals
from paddlecloud.server.dialects.openpai.addresses import ROOT
from paddlecloud.server.dialects.openpai.people import ACLS
from paddlecloud.server.dialects.openpai.places import pools
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

router = APIRouter(
    prefix=f"{ROOT}/api/v2/groups", route_class=PaiRoute, default_response_class=Response, include_in_schema=False
)


@router.get("")
def list_groups(caller: Caller, called: Called) -> Response:
    """The groups that the caller is in; for an admin all."""
    return json_answer([_shown(called, group) for group in called.groups.list_for(caller.identity)])


@router.get("/{name}")
def get_group(name: str, caller: Caller, called: Called) -> Response:
    try:
        return json_answer(_shown(called, called.groups.get_for(caller.identity, name)))
    except NotFoundError:
        raise refusals.no_group(name[:80], 400) from None


@router.get("/{name}/userlist")
def list_members(name: str, caller: Caller, called: Called) -> Response:
    caller.need_admin()
    admins = {account.name for account in called.accounts.users() if account.role.value == ADMINS}
    members = _group(called, name).members
    return json_answer([{"username": member, "clusterAdmin": member in admins} for member in members])


@router.post("")
def add_group(caller: Sender, called: Called, sent: Sent, origin: FromWhere) -> Response:
    caller.need_admin()
    fields = sent.fields()
    name = text_of(fields, "groupname")
    queues, extension = _opened(called, fields.get("extension"), ())
    request = GroupRequest(
        name=name,
        description=text_of(fields, "description", ""),
        external_name=text_of(fields, "externalName", ""),
        queues=queues,
        extension=extension,
    )
    try:
        called.groups.add(caller.identity, request, origin)
    except ConflictError:
        raise refusals.Refusal(409, "ConflictGroupError", f"Group name {name} already exists.") from None
    return said("group is created successfully", 201)


@router.put("")
def change_group(caller: Sender, called: Called, sent: Sent, origin: FromWhere) -> Response:
    """Version 0.1.5 of the SDK sends the group itself, where the server had it in `data`."""
    caller.need_admin()
    fields = sent.fields()
    told = fields.get("data", fields)
    if not isinstance(told, dict):
        raise refusals.invalid('"data" must be an object')
    name = text_of(told, "groupname")
    known = ("description", "externalName", "extension")
    return _changed(called, caller, name, {field: told[field] for field in known if field in told}, origin)


@router.delete("/{name}")
def remove_group(name: str, caller: Caller, called: Called, origin: FromWhere) -> Response:
    caller.need_admin()
    _group(called, name)
    if name in COMPUTED:
        raise refusals.forbidden(f"The group {name} is made of the users by itself, and stays.")
    called.groups.remove(caller.identity, name, origin)
    return said("group is removed successfully")


@router.put("/{name}/extension/{path:path}")
def change_in_extension(
    name: str, path: str, caller: Sender, called: Called, sent: Sent, origin: FromWhere
) -> Response:
    """One value somewhere in the extension, such as acls/virtualClusters."""
    caller.need_admin()
    steps = [step for step in path.split("/") if step]
    whole: Any = people.group(_group(called, name), _group(called, name).queues, [])["extension"]
    place = whole
    for step in steps[:-1]:
        place = place.setdefault(step, {}) if isinstance(place, dict) else None
    if not steps or not isinstance(place, dict):
        raise refusals.invalid(f"There is no {path[:80]} in the extension of {name}.")
    place[steps[-1]] = sent.fields().get("data")
    return _changed(called, caller, name, {"extension": whole}, origin)


@router.put("/{name}/{what}")
def change_one_thing(name: str, what: str, caller: Sender, called: Called, sent: Sent, origin: FromWhere) -> Response:
    caller.need_admin()
    known = {"extension": "extension", "description": "description", "externalname": "externalName"}
    if what not in known:
        raise refusals.no_api(f"{ROOT}/api/v2/groups/{name[:80]}/{what[:80]}")
    return _changed(called, caller, name, {known[what]: sent.fields().get(known[what])}, origin)


def _changed(called: Services, caller: Visitor, name: str, told: dict[str, Any], origin: Origin) -> Response:
    before = _group(called, name)
    queues, extension = (
        (None, None) if told.get("extension") is None else _opened(called, told["extension"], before.queues)
    )
    change = GroupChange(
        description=None if told.get("description") is None else text_of(told, "description"),
        external_name=None if told.get("externalName") is None else text_of(told, "externalName"),
        queues=queues,
        extension=extension,
    )
    called.groups.change(caller.identity, name, change, origin)
    return said(f"update group {name} successfully", 201)


def _opened(called: Services, extension: object, before: tuple[str, ...]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The queues that an extension opens, and the rest of it, which is kept as it is."""
    if extension is None:
        return (), {}
    if not isinstance(extension, dict):
        raise refusals.invalid('"extension" must be an object')
    rest = {name: value for name, value in extension.items() if name != ACLS}
    acls = extension.get(ACLS)
    if acls is None:
        return before, rest
    if not isinstance(acls, dict):
        raise refusals.invalid('"extension.acls" must be an object')
    if acls.get("admin"):
        raise refusals.invalid(f"Who is an admin is a matter of the group {ADMINS} alone.")
    return _queues(called, acls.get("virtualClusters")), rest


def _queues(called: Services, wanted: object) -> tuple[str, ...]:
    """Clusters are open to everybody: only queues are given to a group."""
    if wanted is None:
        return ()
    if not isinstance(wanted, list) or not all(isinstance(one, str) for one in wanted):
        raise refusals.invalid('"extension.acls.virtualClusters" must be a list of names')
    for one in wanted:
        if one not in pools(called):
            raise refusals.no_virtual_cluster(one[:80], 400)
    return tuple(one for one in wanted if one in called.settings.queues)


def _group(called: Services, name: str) -> Group:
    try:
        return called.groups.get(name)
    except NotFoundError:
        raise refusals.no_group(name[:80]) from None


def _shown(called: Services, group: Group) -> dict[str, Any]:
    """What a group opens; of an admin's everything is open, of everybody's what is open to all."""
    opens = pools(called) if group.name == ADMINS else pools(called, "") if group.computed else list(group.queues)
    folders = [one.name for one in called.shared.list() if group.name in (*one.readers, *one.writers)]
    return people.group(group, opens, folders)
