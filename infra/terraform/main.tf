# orderonce in one AWS account and region: `terraform apply` after `make package`.
# README.md says how, and what it costs. One file a concern: queue.tf, table.tf,
# secrets.tf, functions.tf, iam.tf, pins.tf, alarms.tf, dashboard.tf.

provider "aws" {
  region = var.region # null: AWS_REGION or the profile's

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
  # The first part of every resource's name.
  prefix = "${var.name}-${var.environment}"

  # Separates this deployment's idempotency keys, intents and metrics from those of any
  # other. The hash keeps deployments of one name apart that are in several accounts or
  # regions, because they may share a Stripe account.
  place = substr(sha256("${data.aws_caller_identity.current.account_id}/${data.aws_region.current.region}"), 0, 6)
  scope = coalesce(var.scope, "${local.prefix}-${local.place}")

  # Whose state it is: pins.tf refuses a plan for another deployment.
  deployment = {
    prefix  = local.prefix
    scope   = local.scope
    account = data.aws_caller_identity.current.account_id
    region  = data.aws_region.current.region
  }
}
