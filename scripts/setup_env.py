"""Make the environment ``.venv`` of this checkout, with the locked versions of everything minga needs.

    python3 scripts/setup_env.py run     what running needs
    python3 scripts/setup_env.py dev     the same, and the tools of the tests

``uv`` does it when it is on the PATH; otherwise Python's own ``venv`` and ``pip`` do. Debian leaves pip out of a plain
``python3``: then pip's wheel is fetched from PyPI and checked against the digest below. Standard library only, and
readable by old Pythons, so that they can say that they are too old.
"""

import hashlib
import os
import pathlib
import shutil
import ssl
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

OLDEST = (3, 11)
ROOT = pathlib.Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
LOCKS = {"run": "requirements.lock", "dev": "requirements-dev.lock"}

PIP_WHEEL = (
    "https://files.pythonhosted.org/packages/07/25/ee8c38ae72d66b844ce8eb9711ba905dba21ca1a8a0c960057c41cd23337/"
    "pip-26.3-py3-none-any.whl"
)
PIP_SHA256 = "f3b60b20ffaadd4415ed7957212a38ac63fa4c5fa375bd0f4a797777940fad13"


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in LOCKS:
        sys.exit("usage: python3 scripts/setup_env.py run|dev")
    purpose = sys.argv[1]
    if sys.version_info < OLDEST:
        sys.exit(
            "minga needs Python %d.%d or later; %s is %d.%d. With a newer one installed: make PYTHON=python3.12"
            % (*OLDEST, sys.executable, *sys.version_info[:2])
        )
    uv = shutil.which("uv")
    print("Setting up .venv with %s; the first time takes about a minute." % ("uv" if uv else "pip"), flush=True)
    drop_broken_environment()
    if uv:
        install_with_uv(uv, purpose)
    else:
        install_with_pip(purpose)
    stamp(purpose)


def drop_broken_environment():
    """Remove a ``.venv`` whose Python is gone or too old, or that was moved here from elsewhere."""
    if not VENV.exists():
        return
    probe = "import sys, sysconfig; print(sys.version_info >= %r and sys.prefix)" % (OLDEST,)
    try:
        found = subprocess.run([python(), "-c", probe], check=True, stdout=subprocess.PIPE).stdout.decode().strip()
    except (OSError, subprocess.CalledProcessError):
        found = ""
    script = VENV / "bin" / "minga"
    moved = script.exists() and str(VENV) not in script.read_text(errors="replace")
    if found != str(VENV) or moved:
        print("Making .venv anew: the one here is broken or was made elsewhere.")
        shutil.rmtree(str(VENV))


def install_with_uv(uv, purpose):
    """``uv.lock`` decides. Packages beyond it stay (``--inexact``), so that ``run`` never undoes ``dev``."""
    extra = ["--extra", "dev" if purpose == "dev" else "all"]
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    environment["UV_PROJECT_ENVIRONMENT"] = str(VENV)
    command = [uv, "sync", "--quiet", "--frozen", "--inexact", "--python", sys.executable, *extra]
    run(command, cwd=str(ROOT), env=environment)


def install_with_pip(purpose):
    """The requirements lock of the purpose decides: exact versions, with digests."""
    if not VENV.exists():
        run([sys.executable, "-m", "venv", "--without-pip", str(VENV)])
    if subprocess.run([python(), "-c", "import pip"], stderr=subprocess.DEVNULL).returncode != 0:
        install_pip()
    pip = [python(), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    run([*pip, "install", "--require-hashes", "-r", str(ROOT / LOCKS[purpose])])
    run([*pip, "install", "--no-deps", "--no-build-isolation", "--editable", str(ROOT)])


def install_pip():
    """Put pip into the environment: from Python's own copy, or where the system left that out, from PyPI."""
    bundled = [python(), "-m", "ensurepip", "--default-pip"]
    if subprocess.run(bundled, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
        return
    with tempfile.TemporaryDirectory() as folder:
        wheel = pathlib.Path(folder) / PIP_WHEEL.rsplit("/", 1)[1]
        wheel.write_bytes(download(PIP_WHEEL, PIP_SHA256))
        run([python(), str(wheel / "pip"), "install", "--quiet", "--no-index", str(wheel)])


def download(url, sha256):
    """The bytes at ``url``, checked against their digest.

    A bare system may have no certificates. The digest decides what is accepted, so an unverified connection will do.
    """
    try:
        data = fetch(url, None)
    except urllib.error.URLError as error:
        if not isinstance(error.reason, ssl.SSLCertVerificationError):
            sys.exit(
                "pip is missing and %s cannot be reached (%s). Install it: apt install python3-venv"
                % (url, error.reason)
            )
        data = fetch(url, ssl._create_unverified_context())
    if hashlib.sha256(data).hexdigest() != sha256:
        sys.exit("%s is not the file that was expected; install pip otherwise: apt install python3-venv" % url)
    return data


def fetch(url, context):
    with urllib.request.urlopen(url, timeout=60, context=context) as answer:
        return answer.read()


def python():
    return str(VENV / "bin" / "python")


def run(command, **options):
    """Run a command; where it fails, name it and end with its status, as its own output has said why."""
    status = subprocess.run(command, **options).returncode
    if status != 0:
        print("setup failed in: %s" % " ".join(command), file=sys.stderr)
        sys.exit(status)


def stamp(purpose):
    """Tell make that the environment is as new as the locks; ``dev`` holds all that ``run`` needs."""
    for done in ("run", "dev") if purpose == "dev" else ("run",):
        (VENV / (".ready-" + done)).touch()


if __name__ == "__main__":
    main()
