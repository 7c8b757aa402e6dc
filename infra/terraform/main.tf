# One deployment of orderonce in one AWS account and region. README.md explains how to
# apply it. functions.tf joins the parts: order.tf, refund.tf, webhook.tf, reconcile.tf,
# publish.tf, and the optional intake.tf and receipt.tf. What parts share is in queue.tf, iam.tf and alarms.tf;
# the rest in table.tf, stock.tf, secrets.tf, operator.tf and dashboard.tf. pins.tf protects
# the state, and moved.tf renames the addresses of earlier releases in it.

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
