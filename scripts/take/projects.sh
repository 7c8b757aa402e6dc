#!/bin/sh
# Makes a project of few parts, one of some and one of all with make new, and runs in each
# what its owner runs: lint, build, tests, the local system, Terraform. Arguments are lists
# of parts to make instead, or "all". The projects are checked side by side, because their tests wait
# more than they compute; the output of a step is printed only if it fails.
set -eu
cd "$(dirname "$0")/../.."
all=$(sed -n 's/^part "\(.*\)".*/\1/p' scripts/take/parts.hcl | paste -sd, -)
# The largest first: it takes longest.
[ $# -gt 0 ] || set -- all charge,webhook,reconcile,refund charge
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
began=$(date +%s)

# step NAME COMMAND... runs the command for the project of $parts in $dir.
step() {
  name=$1 start=$(date +%s) && shift
  "$@" >"$dir.log" 2>&1 || { cat "$dir.log" && echo "FAIL  $parts: $name" && exit 1; }
  echo "ok    $parts: $name, $(($(date +%s) - start)) s"
}

check() {
  for target in lint build run tf; do step "make $target" make -C "$dir" $target SYSTEMS=linux; done
  case $parts in
  # The tests that run processes are the same ones as here.
  "$all") step 'npm ci' make -C "$dir" scripts/conform/dynalite/node_modules scripts/lab/spec/node_modules
    for module in . scripts scripts/lab; do step "go test, $module" go -C "$dir/$module" test -vet=off ./...; done ;;
  *) step 'make test' make -C "$dir" test ;;
  esac
  echo "      $parts: $(git -C "$dir" ls-files -s | awk -F '\t' '!/^120000|package-lock/ { print $2 }' | (cd "$dir" && xargs cat) | wc -l) lines tracked"
}

checks=''
for parts in "$@"; do
  [ "$parts" != all ] || parts=$all
  dir=$work/$#/shop && mkdir "$work/$#"
  step 'make new' make new MODULE=github.com/acme/shop DIR="$dir" PARTS="$parts"
  check & checks="$checks $!"
  shift
done
failed=0
for check in $checks; do wait "$check" || failed=1; done
[ $failed = 0 ] || exit 1
echo "ok    $(echo "$checks" | wc -w) projects in $(($(date +%s) - began)) s"
