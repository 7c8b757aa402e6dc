# One deployment of orderonce in one AWS account and region. README.md explains how to
# apply it. Resources are in queue.tf, table.tf, secrets.tf, functions.tf, webhook.tf,
# reconcile.tf, publish.tf, iam.tf, operator.tf, alarms.tf and dashboard.tf, optional ones in
# intake.tf, stock.tf and receipt.tf; pins.tf protects the state.

provider "aws" {
  region = var.region # null: from AWS_REGION or the profile

  default_tags {
    tags = merge(var.tags, {
      Application = var.name
      Environment = var.environment
      ManagedBy   = "terraform"
    })
  }
}

data "aws_caller_identity" "current" {}

data "aws_partition" "current" {}

data "aws_region" "current" {}

locals {
  # Prefix of the name of every resource.
  prefix = "${var.name}-${var.environment}"

  # The scope separates the idempotency keys, PaymentIntents and metrics of deployments.
  # It contains a hash of account and region, because deployments of the same name in
  # several of them may share a Stripe account.
  location = "${data.aws_caller_identity.current.account_id}/${data.aws_region.current.region}"
  scope    = coalesce(var.scope, "${local.prefix}-${substr(sha256(local.location), 0, 6)}")

  # Identifies the deployment that a state belongs to: see pins.tf.
  deployment = {
    prefix  = local.prefix
    scope   = local.scope
    account = data.aws_caller_identity.current.account_id
    region  = data.aws_region.current.region
  }
  # The scope of the order function in AWS, if there is one: see pins.tf.
  deployed_scopes = compact([for function in data.aws_lambda_function.deployed :
    try(function.environment[0].variables.SCOPE, null)
  ])
}

data "aws_lambda_functions" "all" {}

data "aws_lambda_function" "deployed" {
  count = contains(data.aws_lambda_functions.all.function_names, "${local.prefix}-order") ? 1 : 0

  function_name = "${local.prefix}-order"
}
