#!/bin/sh
# Formats, lints, validates and tests Terraform without an AWS account, in copies under build/tf: your
# state, variables and lock file stay untouched.
# Terraform 1.11 or later must be on PATH; without it only tflint runs, which is an error if
# CI=true. An argument names an OpenTofu executable to validate and test with as well.
set -eu
cd "$(dirname "$0")/.."
tofu=${1:-}
work=$PWD/build/tf

fail() { echo "FAIL  $*" && exit 1; }

# check NAME COMMAND... runs the command and prints its output only if it fails.
check() {
  name=$1 && shift
  "$@" >"$work/log" 2>&1 || { cat "$work/log" && fail "$name"; }
  echo "ok    $name"
}

folders='infra/terraform infra/terraform/modules/orderonce'
folders="$folders examples/terraform"

# copy copies the folders into the directory $1, without the files of one deployment.
copy() {
  mkdir -p "$1/infra/terraform"
  cp -R infra/terraform/*.tf infra/terraform/.tflint.hcl infra/terraform/modules infra/terraform/tests "$1/infra/terraform"
  cp infra/terraform/moved.tf.json "$1/infra/terraform"
  mkdir -p "$1/examples/terraform"
  cp -R examples/terraform/*.tf infra/terraform/.tflint.hcl examples/terraform/tests "$1/examples/terraform"
  rm -f "$1/infra/terraform/backend.tf"
}

# validate PROGRAM DIRECTORY
validate() {
  for step in 'init -backend=false -input=false' validate; do
    # shellcheck disable=SC2086 # init has arguments
    check "$1 ${2#"$work/"}: ${step%% *}" "$1" -chdir="$2" $step -no-color
  done
}

# validate_and_test PROGRAM DIRECTORY
validate_and_test() {
  validate "$1" "$2"
  check "$1 ${2#"$work/"}: test" "$1" -chdir="$2" test -no-color
  tail -n 1 "$work/log"
}

rm -rf "$work"
copy "$work"
module=$work/infra/terraform/modules/orderonce
for folder in $folders; do
  check "tflint, preset all: $folder" go run github.com/terraform-linters/tflint@v0.64.0 --chdir="$work/$folder"
done

if ! command -v terraform >/dev/null; then
  [ "${CI:-}" != true ] || fail 'terraform is not on PATH: install Terraform 1.11 or later'
  echo 'SKIP  fmt, validate and test: terraform is not on PATH, install Terraform 1.11 or later'
  exit 0
fi

# The example files get suffixes that terraform fmt recognizes.
mkdir "$work/settings"
cp infra/terraform/backend.tf.example "$work/settings/backend.tf"
cp infra/terraform/environments/example.s3.tfbackend "$work/settings/backend.tfvars"
cp infra/terraform/environments/example.tfvars infra/testdata/pins/stub.tf "$work/settings"

# Terraform in a guide must be valid as it is printed there.
for guide in $(grep -l '^```terraform$' docs/guides/*.md); do
  mkdir -p "$work/$guide"
  sed -n '/^```terraform$/,/^```$/{/^```/d;p;}' "$guide" >"$work/$guide/main.tf"
  cp infra/terraform/versions.tf "$work/$guide"
done

check 'terraform fmt' terraform fmt -check -diff -recursive -no-color "$work"

for folder in $folders; do validate_and_test terraform "$work/$folder"; done
for guide in "$work"/docs/guides/*; do [ ! -d "$guide" ] || validate terraform "$guide"; done

# With -verbose, terraform test prints every plan and state of the tests that set a secret.
canaries=$(grep -oE '"[a-z_]+_canary"' "$module/tests/secrets.tftest.hcl" | tr -d '"' | sort -u)
[ -n "$canaries" ] || fail 'no test sets a secret'
for format in -no-color -json; do
  check "terraform test -verbose $format" \
    terraform -chdir="$module" test -verbose "$format" -filter=tests/secrets.tftest.hcl
  grep -q secret_string_wo_version "$work/log" || fail 'no plan was printed, so there is nothing to search'
  for canary in $canaries; do
    ! grep -q "$canary" "$work/log" || fail "a plan, state, output or log line contains $canary"
  done
done

# terraform test cannot destroy with other variables than it applied with. So apply pins.tf
# alone, which needs no provider, then plan and destroy with those of another deployment.
mkdir "$work/pins"
cp "$module/pins.tf" infra/testdata/pins/stub.tf "$work/pins"
check 'pins.tf: init' terraform -chdir="$work/pins" init -no-color
check 'pins.tf: apply' terraform -chdir="$work/pins" apply -auto-approve -no-color -var=pinned=one
if terraform -chdir="$work/pins" plan -no-color -var=pinned=two >"$work/log" 2>&1 ||
  ! grep -q 'This state belongs to another deployment' "$work/log"; then
  cat "$work/log" && fail "pins.tf must reject another deployment's plan"
fi
check "pins.tf: rejects another deployment's plan, but not its destroy" \
  terraform -chdir="$work/pins" destroy -auto-approve -no-color -var=pinned=two

[ -n "$tofu" ] || { echo '      not tested with OpenTofu: make tofu builds it' && exit 0; }

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
copy "$work/opentofu"

# OpenTofu has no mock_provider with a source, so replace the source by its content.
for folder in $folders; do
  sed -i.mocks -e "/^  source *= /r $module/tests/mocks/aws.tfmock.hcl" -e '/^  source *= /d' \
    "$work/opentofu/$folder"/tests/*.tftest.hcl
  validate_and_test "$tofu" "$work/opentofu/$folder"
done
