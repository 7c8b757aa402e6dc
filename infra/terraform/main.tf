# One deployment of the module in the AWS account and region of the credentials. README.md explains
# how to apply it. variables.tf is the module's own file, so that each variable has its type,
# description and checks here too: a new one needs a line below, and an output one in outputs.tf.

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

variable "region" {
  description = "AWS region. Defaults to the region of the environment or profile."
  type        = string
  default     = null
}

variable "tags" {
  description = "Tags of every resource, in addition to Application, Environment and ManagedBy."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = length(setintersection(keys(var.tags), ["Application", "Environment", "ManagedBy"])) == 0
    error_message = "tags: must not contain Application, Environment or ManagedBy, which the module sets"
  }
}

module "orderonce" {
  source = "./modules/orderonce"

  name                         = var.name
  environment                  = var.environment
  scope                        = var.scope
  stripe_secret_key            = var.stripe_secret_key
  stripe_secret_version        = var.stripe_secret_version
  stripe_read_key              = var.stripe_read_key
  stripe_read_key_version      = var.stripe_read_key_version
  create_refund                = var.create_refund
  stripe_refund_key            = var.stripe_refund_key
  stripe_refund_key_version    = var.stripe_refund_key_version
  create_webhook               = var.create_webhook
  webhook_secret               = var.webhook_secret
  webhook_secret_version       = var.webhook_secret_version
  webhook_rate_limit           = var.webhook_rate_limit
  webhook_burst_limit          = var.webhook_burst_limit
  webhook_memory_size          = var.webhook_memory_size
  webhook_reserved_concurrency = var.webhook_reserved_concurrency
  reconcile_minutes            = var.reconcile_minutes
  reconcile_rate               = var.reconcile_rate
  create_intake                = var.create_intake
  intake_jwt                   = var.intake_jwt
  intake_rate_limit            = var.intake_rate_limit
  intake_burst_limit           = var.intake_burst_limit
  intake_reserved_concurrency  = var.intake_reserved_concurrency
  stock_tracking               = var.stock_tracking
  stock_hold_hours             = var.stock_hold_hours
  create_receipts              = var.create_receipts
  receipt_from                 = var.receipt_from
  receipt_identity             = var.receipt_identity
  receipt_configuration_set    = var.receipt_configuration_set
  receipt_mode                 = var.receipt_mode
  event_archive_days           = var.event_archive_days
  create_example_subscriber    = var.create_example_subscriber
  create_operator_policies     = var.create_operator_policies
  secret_recovery_days         = var.secret_recovery_days
  fifo                         = var.fifo
  producer_arns                = var.producer_arns
  producer_rule_arns           = var.producer_rule_arns
  producer_topic_arns          = var.producer_topic_arns
  visibility_timeout           = var.visibility_timeout
  function_timeout             = var.function_timeout
  memory_size                  = var.memory_size
  batch_size                   = var.batch_size
  maximum_concurrency          = var.maximum_concurrency
  processing                   = var.processing
  reserved_concurrency         = var.reserved_concurrency
  provisioned_pollers          = var.provisioned_pollers
  architecture                 = var.architecture
  tracing                      = var.tracing
  log_retention_days           = var.log_retention_days
  permissions_boundary         = var.permissions_boundary
  kms_key_arn                  = var.kms_key_arn
  previous_kms_key_arns        = var.previous_kms_key_arns
  orders_table_name            = var.orders_table_name
  warm_throughput              = var.warm_throughput
  deletion_protection          = var.deletion_protection
  alarms                       = var.alarms
  create_dashboard             = var.create_dashboard
  alarm_topic_arn              = var.alarm_topic_arn
  package_dir                  = coalesce(var.package_dir, "${path.module}/../../build/package")
  package_s3                   = var.package_s3
}
