# The module called for two shops in one region, each with its own queues, table, secrets and Stripe
# key, and called again for a third in another region. In your own repository, the source is
# git::https://github.com/YOUR-ORGANIZATION/orderonce.git//infra/terraform/modules/orderonce?ref=v0.1.0

terraform {
  required_version = ">= 1.11"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 6.40"
    }
  }
}

provider "aws" {
  region = "eu-west-1"
}

provider "aws" {
  alias  = "us"
  region = "us-east-1"
}

variable "stripe_secret_keys" {
  description = "Stripe key of each shop, by its name."
  type        = map(string)
  ephemeral   = true
  sensitive   = true
}

variable "checksums" {
  description = "Text of the SHA256SUMS of the release."
  type        = string
}

module "shops" {
  source   = "../../infra/terraform/modules/orderonce"
  for_each = { north = { alarms = "all" }, south = { alarms = "essential" } }

  name              = each.key
  environment       = "prod"
  alarms            = each.value.alarms
  alarm_topic_arn   = "arn:aws:sns:eu-west-1:111122223333:oncall"
  stripe_secret_key = var.stripe_secret_keys[each.key]
  package_s3        = { bucket = "releases-eu", prefix = "orderonce/v0.1.0/", checksums = var.checksums }
}

# Roles have no region, so this shop needs a name of its own. A bucket has one, and must be here too.
module "west" {
  source    = "../../infra/terraform/modules/orderonce"
  providers = { aws = aws.us }

  name              = "west"
  environment       = "prod"
  alarm_topic_arn   = "arn:aws:sns:us-east-1:111122223333:oncall"
  stripe_secret_key = var.stripe_secret_keys["west"]
  package_s3        = { bucket = "releases-us", prefix = "orderonce/v0.1.0/", checksums = var.checksums }
}

output "order_queue_urls" {
  description = "URL of the queue to which producers send the orders of each shop."
  value       = { for name, shop in merge(module.shops, { west = module.west }) : name => shop.order_queue_url }
}

output "scopes" {
  description = "Scope of each shop, which no two may share."
  value       = { for name, shop in merge(module.shops, { west = module.west }) : name => shop.scope }
}
