#!/usr/bin/env bash
# Makes the Debian packages in build/packages: liboctet0.1, liboctet-dev, octet, and octet-training with LibTorch in it.
#   scripts/build_packages.sh          all
#   scripts/build_packages.sh --small  without octet-training
set -euo pipefail
cd "$(dirname "$0")/.."
flags=()
case "${1:-}" in
  "")
    torch="$(scripts/fetch_libtorch.sh)"
    ls -d "$torch"/../torch-*.dist-info/licenses >/dev/null 2>&1 || {
      echo "$(dirname "$torch") was unpacked without the licenses, which a package needs: remove it and run this again" >&2; exit 1; }
    ;;
  --small) flags=(-DOCTET_TRAIN=OFF) ;;
  *) echo "usage: scripts/build_packages.sh [--small]" >&2; exit 2 ;;
esac
command -v dpkg-shlibdeps >/dev/null || { echo "dpkg-shlibdeps is missing: install dpkg-dev (scripts/install_packages.sh)" >&2; exit 1; }
cmake --preset packages -DOCTET_TRAIN=ON "${flags[@]}" >/dev/null
cmake --build --preset packages -j "${OCTET_JOBS:-$(nproc)}" --target octet_installed
rm -f build/packages/*.deb
(cd build/packages && cpack >cpack.log 2>&1) || { cat build/packages/cpack.log >&2; exit 1; }
ls -l build/packages/*.deb
