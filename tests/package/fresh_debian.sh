#!/usr/bin/env bash
# Installs the package of the small program in a fresh Debian 12 and does with it what a person would: no compiler, no
# LibTorch. Needs root, debootstrap and the packages of scripts/build_packages.sh; exits with 77 where one of them is missing.
#   tests/package/fresh_debian.sh PACKAGE_FOLDER [ROOT]
# ROOT: an unpacked Debian 12 to copy instead of making one.
set -euo pipefail
[ $# -ge 1 ] || { sed -n '4,5s/^# *//p' "$0" >&2; exit 2; }
packages="$(cd "$1" && pwd)" base="${2:-}"
[ "$(id -u)" -eq 0 ] || { echo "not tested: only root can make a root"; exit 77; }
shopt -s nullglob
found=("$packages"/octet_*.deb)
[ ${#found[@]} -eq 1 ] || { echo "not tested: no package octet_*.deb in $packages (scripts/build_packages.sh)"; exit 77; }
work="$(mktemp -d)"
trap 'umount -l "$work/root/proc" 2>/dev/null || true; rm -rf --one-file-system "$work"' EXIT
root="$work/root"
if [ -n "$base" ]; then
  cp -a "$base" "$root"
else
  command -v debootstrap >/dev/null || { echo "not tested: debootstrap is not installed"; exit 77; }
  # From where this machine has its own packages.
  mirror="$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' | awk '$2 == "bookworm" { print $1; exit }')"
  debootstrap --variant=minbase bookworm "$root" "$mirror" >"$work/log" 2>&1 || { tail "$work/log" >&2; exit 1; }
fi
in_root() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }
mount -t proc proc "$root/proc" 2>/dev/null || true
cp /etc/resolv.conf "$root/etc/" 2>/dev/null || true
mkdir -p "$root/work"
cp "${found[0]}" "$root/work/"
in_root sh -c 'apt-get update -qq && apt-get install -y -qq --no-install-recommends /work/octet_*.deb' >"$work/log" 2>&1 ||
  { tail -n 30 "$work/log" >&2; exit 1; }
if in_root sh -c 'command -v cc || ls /usr/lib/*/libtorch* /usr/lib/*/octet' >/dev/null 2>&1; then echo "FAILED: a compiler or LibTorch is there" >&2; exit 1; fi
libraries="$(in_root ldd /usr/bin/octet | wc -l)"
[ "$libraries" -lt 25 ] || { echo "FAILED: octet loads $libraries libraries" >&2; exit 1; }

do_it() { printf '$ octet %s\n' "$*"; in_root sh -c 'cd /work && exec octet "$@"' sh "$@"; }
do_it --version
do_it models resnet20 -o /work/model.onnx
do_it compile -m model.onnx -o model.octet
do_it bench -m model.octet --runs 5 --windows 1 --threads 1 --json bench.json >/dev/null
do_it inspect -m model.octet >/dev/null
# A picture of a few colors, binary PPM.
{ printf 'P6\n32 32\n255\n'; head -c $((32 * 32 * 3)) /dev/zero | tr '\0' 'x'; } >"$root/work/picture.ppm"
do_it infer -m model.octet picture.ppm --mean 0.5 --std 0.25
# INT8, which carries its names and preprocessing, and its proof without LibTorch.
mkdir -p "$root/work/photos/apple" "$root/work/photos/bee"
cp "$root/work/picture.ppm" "$root/work/photos/apple/"; cp "$root/work/picture.ppm" "$root/work/photos/bee/"
do_it quantize -m model.onnx --images photos --mean 0.5 --std 0.25 --classes apple,bee,cup,door,egg,fox,gate,hat,ink,jar -o model.qdq.onnx
do_it compile model.qdq.onnx -o int8.octet
do_it infer -m int8.octet picture.ppm | tee "$work/said"
grep -qE 'apple|bee|cup|door|egg|fox|gate|hat|ink|jar' "$work/said" || { echo "FAILED: infer names no class" >&2; exit 1; }
do_it compare model.qdq.onnx int8.octet --images photos
do_it verify -m model.qdq.onnx --engine_file int8.octet --images photos
[ -s "$root/work/bench.json" ] || { echo "FAILED: bench wrote nothing" >&2; exit 1; }
# What needs LibTorch says so.
if do_it train --data photos -r results 2>"$work/said"; then echo "FAILED: train did not fail" >&2; exit 1; fi
grep -q 'install the package octet-training\|this build has no training' "$work/said" || { cat "$work/said" >&2; exit 1; }
echo "octet works in a fresh Debian 12, with $libraries libraries, installed $(in_root dpkg-query -W -f '${Installed-Size}' octet) KiB"
