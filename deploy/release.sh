#!/bin/sh
# sh deploy/release.sh [FOLDER]
# Builds FOLDER (dist/) anew: the package, the exact versions of all that it needs, what the container image is made
# from, a bill of materials (CycloneDX) and checksums.
set -eu
mkdir -p "${1:-$(dirname "$0")/../dist}"
dist=$(cd "${1:-$(dirname "$0")/../dist}" && pwd)
cd "$(dirname "$0")/.."
bin=$PWD/.venv/bin

rm -f "$dist"/*
"$bin/python" -m hatchling build --target wheel --directory "$dist" >/dev/null
cp requirements/run.txt "$dist"/requirements.txt
cp deploy/Containerfile deploy/compose.yaml "$dist"
"$bin/uv" tool run --quiet --from cyclonedx-bom==7.5.0 cyclonedx-py requirements requirements/run.txt \
    --pyproject pyproject.toml --output-reproducible --output-file "$dist"/sbom.cdx.json

cd "$dist"
wheel=$(echo flagadmin-*.whl)
# pip refuses files without a hash among those with one.
echo "./$wheel --hash=sha256:$(sha256sum "$wheel" | cut -d' ' -f1)" >>requirements.txt
sha256sum -- * >SHA256SUMS.new
mv SHA256SUMS.new SHA256SUMS
echo "$dist/$wheel"
