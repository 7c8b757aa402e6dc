#!/bin/sh
# Formats, lints, validates and tests infra/terraform without an AWS account, in copies under
# build/tf: your state, variables and lock file stay untouched. Terraform 1.11 or later must
# be on PATH; without it only tflint runs, which is an error if CI=true. An argument names an
# OpenTofu executable to validate and test the module with as well.
set -eu
cd "$(dirname "$0")/.."
tofu=${1:-}
work=$PWD/build/tf
canaries='sk_test_canary rk_test_canary whsec_canary' # the secrets in tests/secrets.tftest.hcl

fail() { echo "FAIL  $*" && exit 1; }

# check NAME COMMAND... runs the command and prints its output only if it fails.
check() {
  name=$1 && shift
  "$@" >"$work/log" 2>&1 || { cat "$work/log" && fail "$name"; }
  echo "ok    $name"
}

# copy_module copies the module to the directory $1, without the files of one deployment.
copy_module() {
  mkdir -p "$1"
  cp -R infra/terraform/*.tf infra/terraform/.tflint.hcl infra/terraform/tests "$1"
  rm -f "$1/backend.tf"
}

# validate_and_test PROGRAM DIRECTORY
validate_and_test() {
  check "$1 init" "$1" -chdir="$2" init -backend=false -input=false -no-color
  check "$1 validate" "$1" -chdir="$2" validate -no-color
  check "$1 test" "$1" -chdir="$2" test -no-color
  tail -n 1 "$work/log"
}

rm -rf "$work"
copy_module "$work/module"
check 'tflint, preset all' go run github.com/terraform-linters/tflint@v0.64.0 --chdir="$work/module"

if ! command -v terraform >/dev/null; then
  [ "${CI:-}" != true ] || fail 'terraform is not on PATH: install Terraform 1.11 or later'
  echo 'SKIP  fmt, validate and test: terraform is not on PATH, install Terraform 1.11 or later'
  exit 0
fi

# The example files get suffixes that terraform fmt recognizes.
mkdir "$work/examples"
cp infra/terraform/backend.tf.example "$work/examples/backend.tf"
cp infra/terraform/environments/example.s3.tfbackend "$work/examples/backend.tfvars"
cp infra/terraform/environments/example.tfvars infra/testdata/pins/stub.tf "$work/examples"

# The subscriber in the guide must be valid as it is printed there.
guide=docs/guides/hear-about-orders.md
mkdir "$work/subscriber"
sed -n '/^```hcl$/,/^```$/{/^```/d;p;}' "$guide" >"$work/subscriber/main.tf"
[ -s "$work/subscriber/main.tf" ] || fail "$guide: no Terraform found"
cp infra/terraform/versions.tf "$work/subscriber"

check 'terraform fmt' terraform fmt -check -diff -recursive -no-color "$work"

validate_and_test terraform "$work/module"
check "$guide: init" terraform -chdir="$work/subscriber" init -backend=false -input=false -no-color
check "$guide: validate" terraform -chdir="$work/subscriber" validate -no-color

# With -verbose, terraform test prints every plan and state of the tests that set a secret.
for canary in $canaries; do
  grep -q "\"$canary\"" infra/terraform/tests/secrets.tftest.hcl || fail "no test sets the secret $canary"
done
for format in -no-color -json; do
  check "terraform test -verbose $format" \
    terraform -chdir="$work/module" test -verbose "$format" -filter=tests/secrets.tftest.hcl
  grep -q secret_string_wo_version "$work/log" || fail 'no plan was printed, so there is nothing to search'
  for canary in $canaries; do
    ! grep -q "$canary" "$work/log" || fail "a plan, state, output or log line contains $canary"
  done
done

# terraform test cannot destroy with other variables than it applied with. So apply pins.tf
# alone, which needs no provider, then plan and destroy with those of another deployment.
mkdir "$work/pins"
cp infra/terraform/pins.tf infra/testdata/pins/stub.tf "$work/pins"
check 'pins.tf: init' terraform -chdir="$work/pins" init -no-color
check 'pins.tf: apply' terraform -chdir="$work/pins" apply -auto-approve -no-color -var=pinned=one
if terraform -chdir="$work/pins" plan -no-color -var=pinned=two >"$work/log" 2>&1 ||
  ! grep -q 'This state belongs to another deployment' "$work/log"; then
  cat "$work/log" && fail "pins.tf must reject another deployment's plan"
fi
check "pins.tf: rejects another deployment's plan, but not its destroy" \
  terraform -chdir="$work/pins" destroy -auto-approve -no-color -var=pinned=two

[ -n "$tofu" ] || { echo 'SKIP  OpenTofu: make tofu builds it' && exit 0; }

# OpenTofu looks for the provider under the name of its own registry. If Terraform takes it
# from a filesystem mirror, link every VERSION/PLATFORM of the mirror under that name.
mirror=$(sed -n 's/^ *path *= *"\(.*\)"/\1/p' "${TF_CLI_CONFIG_FILE:-/dev/null}" 2>/dev/null || true)
if [ -n "$mirror" ]; then
  for provider in "$mirror"/registry.terraform.io/hashicorp/aws/*/*; do
    link=$work/mirror/registry.opentofu.org/${provider#"$mirror"/registry.terraform.io/}
    mkdir -p "$(dirname "$link")" && ln -s "$provider" "$link"
  done
  printf 'provider_installation {\nfilesystem_mirror {\npath = "%s"\n}\n}\n' "$work/mirror" >"$work/tofu.rc"
  export TF_CLI_CONFIG_FILE="$work/tofu.rc"
fi
copy_module "$work/opentofu"

# OpenTofu has no mock_provider with a source, so replace the source by its content.
for test in "$work"/module/tests/*.tftest.hcl; do
  sed -e '/^  source = /r infra/terraform/tests/mocks/aws.tfmock.hcl' -e '/^  source = /d' "$test" \
    >"$work/opentofu/tests/${test##*/}"
done
validate_and_test "$tofu" "$work/opentofu"
