"""What mail says. A letter comes from this server alone: nothing that a stranger wrote goes into it but an address
that was read and written anew."""

from __future__ import annotations

import socket
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTPUTF8
from email.utils import format_datetime, make_msgid
from urllib.parse import urlsplit

from paddlecloud.model import endpoint
from paddlecloud.model.errors import ConfigError, InvalidError
from paddlecloud.server import mailaddress
from paddlecloud.server.mailaddress import MailAddress
from paddlecloud.server.settings import Settings

SUBJECT = "PaddleCloud: your access key"
KEY_HEADER = "X-PaddleCloud-Key"  # the ak that a letter brings
POLICY = SMTPUTF8.clone(linesep="\n")  # as it lies in the outbox, where a person may read it
_WILDCARDS = ("0.0.0.0", "::")

_KEY = """\
Hello,

somebody, most likely you, asked PaddleCloud at {url} for an access key for {user}.

user id: {user}
ak: {ak}
sk: {sk}

Where `paddlecloud gen_token` waits for them, paste ak and sk. Or put this into ~/bin/paddlecloud/conf/client.conf:

{conf}

With the key jobs are run in your name, so keep it to yourself. Keys that you had before are as good as they were.
If it was not you who asked, do nothing: nobody else has this key. `paddlecloud key revoke {ak}` makes it worthless.


您好：

有人（很可能是您本人）在 {url} 上为 {user} 申请了 PaddleCloud 访问密钥，密钥见上。

如果 `paddlecloud gen_token` 正在等待输入，请依次粘贴 ak 和 sk；
也可以把上面的配置写入 ~/bin/paddlecloud/conf/client.conf。

持有密钥的人可以用您的名义运行任务，请勿泄露。您以前的密钥仍然有效。
如果不是您本人申请，请忽略本邮件：没有其他人得到这个密钥。运行 `paddlecloud key revoke {ak}` 可使其失效。
"""

_NO_MORE = """\
Hello,

somebody, most likely you, asked PaddleCloud at {url} for an access key for {user}. There are {count} keys
already, so no other was made: use the ak and sk of an earlier letter. Where a key works,

  paddlecloud key list
  paddlecloud key revoke AK

make room for another. If none does, ask the operator of that server.


您好：

有人（很可能是您本人）在 {url} 上为 {user} 申请了 PaddleCloud 访问密钥。该账号已有 {count} 个密钥，
因此没有再生成新的密钥：请使用之前邮件中的 ak 和 sk，或者用上面的命令查看并删除旧密钥后再申请。
如果没有可用的密钥，请联系服务器管理员。
"""

_ADMIN = """\
Hello,

somebody, most likely you, asked PaddleCloud at {url} for an access key for {user}. That account is an admin's, and an
admin gets no key by mail: who can read mail on its way must not rule the server. Where you are logged in,

  paddlecloud key create

makes one.


您好：

有人（很可能是您本人）在 {url} 上为 {user} 申请了 PaddleCloud 访问密钥。该账号是管理员账号，出于安全考虑，
管理员的密钥不通过邮件发送。请在已登录的机器上运行 `paddlecloud key create`。
"""

_CONF = """\
[main]
debug = 0
user_id = {user}
ak = {ak}
sk = {sk}

[openapi]
host = {host}
port = {port}"""


class Letters:
    def __init__(self, *, sender: str, url: str) -> None:
        self._sender = _checked(sender)
        self._url = url

    def key(self, to: MailAddress, ak: str, sk: str, now: datetime) -> EmailMessage:
        host, port = endpoint.split(self._url)
        conf = _CONF.format(user=to.user, ak=ak, sk=sk, host=host, port=port)
        letter = self._letter(to, _KEY.format(url=self._url, user=to.user, ak=ak, sk=sk, conf=conf), now)
        letter[KEY_HEADER] = ak
        return letter

    def no_more(self, to: MailAddress, count: int, now: datetime) -> EmailMessage:
        return self._letter(to, _NO_MORE.format(url=self._url, user=to.user, count=count), now)

    def admin(self, to: MailAddress, now: datetime) -> EmailMessage:
        return self._letter(to, _ADMIN.format(url=self._url, user=to.user), now)

    def _letter(self, to: MailAddress, text: str, now: datetime) -> EmailMessage:
        letter = EmailMessage(POLICY)
        letter["From"] = self._sender
        letter["To"] = str(to)
        letter["Subject"] = SUBJECT
        letter["Date"] = format_datetime(now)
        letter["Message-ID"] = make_msgid(domain=self._sender.rpartition("@")[2])
        letter["Auto-Submitted"] = "auto-generated"
        letter.set_content(text, cte="8bit")
        return letter


def server_url(settings: Settings, port: int) -> str:
    """Where users reach the server: as configured, else as this machine is called, at this port."""
    server = settings.server
    if server.url:
        if not urlsplit(server.url).hostname or urlsplit(server.url).scheme not in ("http", "https"):
            raise ConfigError(f"server.url = {server.url!r} is no address: write https://host:port", field="server.url")
        return server.url.rstrip("/")
    host = socket.getfqdn() if server.host in _WILDCARDS else server.host
    scheme = "https" if server.certificate else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _checked(sender: str) -> str:
    """An address that mail can come from."""
    try:
        return str(mailaddress.parse(sender))
    except InvalidError:
        raise ConfigError(
            f"mail.sender = {sender!r} is no address of mail: write paddlecloud@example.com", field="mail.sender"
        ) from None
