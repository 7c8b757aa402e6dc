#!/bin/sh
# Makes a project of few parts, one of some and one of all with make new, and runs in each
# what its owner runs: lint, build, tests, the local system, Terraform. Arguments are lists
# of parts to make instead; the output of a step is printed only if it fails.
set -eu
cd "$(dirname "$0")/../.."
all=$(sed -n 's/^part "\(.*\)".*/\1/p' scripts/take/parts.hcl | paste -sd, -)
[ $# -gt 0 ] || set -- charge charge,webhook,reconcile,refund "$all"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
began=$(date +%s)

# step NAME COMMAND... runs the command in the project.
step() {
  name=$1 start=$(date +%s) && shift
  "$@" >"$work/log" 2>&1 || { cat "$work/log" && echo "FAIL  $parts: $name" && exit 1; }
  echo "ok    $parts: $name, $(($(date +%s) - start)) s"
}

for parts in "$@"; do
  dir=$work/shop
  step 'make new' make new MODULE=github.com/acme/shop DIR="$dir" PARTS="$parts"
  for target in lint build run tf; do step "make $target" make -C "$dir" $target; done
  case $parts in
  # The tests that run processes are the same ones as here.
  "$all") for module in . scripts scripts/lab; do step "go test, $module" go -C "$dir/$module" test ./...; done ;;
  *) step 'make test' make -C "$dir" test ;;
  esac
  echo "      $parts: $(git -C "$dir" ls-files | grep -v package-lock.json | (cd "$dir" && tr '\n' '\0' | xargs -0 cat) | wc -l) lines tracked"
  rm -rf "$dir"
done
echo "ok    $# projects in $(($(date +%s) - began)) s"
