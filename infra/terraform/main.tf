# orderonce in one AWS account and region: `terraform apply` after `make package`. README.md says how, and what it costs.
# One file a concern: queue.tf, table.tf, secrets.tf, functions.tf, iam.tf, alarms.tf, dashboard.tf.

provider "aws" {
  region = var.region # null: AWS_REGION or the profile's

  default_tags {
    tags = {
      Application = var.name
      Environment = var.environment
      ManagedBy   = "terraform"
    }
  }
}

data "aws_caller_identity" "current" {}

data "aws_partition" "current" {}

data "aws_region" "current" {}

locals {
  # Names every resource, and separates this deployment's idempotency keys and intents from those of any other.
  scope = "${var.name}-${var.environment}"
}
