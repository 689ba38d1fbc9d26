#!/bin/sh
# sh deploy/release.sh [FOLDER]
# Builds FOLDER (dist/): the package, the exact versions of all that it needs, what the container image is made from, a bill of
# materials with licenses (CycloneDX), a statement of provenance and checksums. With RELEASE_KEY, the path of an SSH key, the
# checksums are signed with it; without, nothing is.
set -eu
started=$(date -u +%Y-%m-%dT%H:%M:%SZ)
mkdir -p "${1:-$(dirname "$0")/../dist}"
dist=$(cd "${1:-$(dirname "$0")/../dist}" && pwd)
cd "$(dirname "$0")/.."
bin=$PWD/.venv/bin

rm -f "$dist"/*
"$bin/python" -m hatchling build --target wheel --directory "$dist" >/dev/null
cp requirements/run.txt "$dist"/requirements.txt
cp deploy/Containerfile deploy/compose.yaml "$dist"
cd "$dist"
wheel=$(echo flagadmin-*.whl)
# pip refuses files without a hash among those with one.
echo "./$wheel --hash=sha256:$(sha256sum "$wheel" | cut -d' ' -f1)" >>requirements.txt

environment=$(mktemp -d)
trap 'rm -rf "$environment"' EXIT
"$bin/uv" venv --quiet --python "$bin/python" --allow-existing "$environment"
"$bin/uv" pip install --quiet --python "$environment/bin/python" --require-hashes --requirement "$OLDPWD"/requirements/run.txt
cyclonedx() {
    PYTHONWARNINGS=ignore "$bin/uv" tool run --quiet --from cyclonedx-bom==7.5.0 cyclonedx-py "$@" --output-reproducible \
        --pyproject "$OLDPWD"/pyproject.toml
}
cyclonedx environment "$environment/bin/python" --output-file sbom.cdx.json
cyclonedx requirements "$OLDPWD"/requirements/run.txt --output-file "$environment/locked.cdx.json"
"$bin/python" "$OLDPWD"/deploy/release_documents.py "$dist" "$environment" "$started"

sha256sum -- * >SHA256SUMS.new
mv SHA256SUMS.new SHA256SUMS
[ -z "${RELEASE_KEY:-}" ] || ssh-keygen -Y sign -q -n flagadmin-release -f "$RELEASE_KEY" SHA256SUMS
echo "$dist/$wheel"
