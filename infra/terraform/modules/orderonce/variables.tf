variable "name" {
  description = "First part of the name of every resource."
  type        = string
  default     = "orderonce"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]*$", var.name))
    error_message = "name: must match ^[a-z][a-z0-9-]*$"
  }
}

variable "environment" {
  description = "Second part of the name of every resource. Must be unique per AWS account, or roles collide."
  type        = string
  default     = "dev"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z0-9-]+$", var.environment))
    error_message = "environment: must match ^[a-z0-9-]+$"
  }

  validation { # a scope has at most 32 characters; the default one ends in '-' and a hash of six
    condition     = length("${var.name}-${var.environment}") <= (var.scope == null ? 25 : 32)
    error_message = "environment: with name and '-' must be at most 25 characters, or 32 if scope is set"
  }
}

variable "scope" {
  description = "Part of every idempotency key, unique per Stripe account. It must never change."
  type        = string
  default     = null

  validation { # the function accepts the same (order.NewScope)
    condition     = var.scope == null || can(regex("^[a-z][a-z0-9-]{0,31}$", var.scope))
    error_message = "scope: must match ^[a-z][a-z0-9-]{0,31}$"
  }
}

variable "stripe_secret_key" {
  description = "Stripe key, as TF_VAR_stripe_secret_key, to create and rotate it. Never in the state."
  type        = string
  default     = null
  ephemeral   = true
  sensitive   = true

  validation {
    condition = var.stripe_secret_key == null || can(
      regex("^(sk|rk)_(test|live)_[A-Za-z0-9_]+$", var.stripe_secret_key)
    )
    error_message = "stripe_secret_key: must start with sk_test_, sk_live_, rk_test_ or rk_live_"
  }
}

variable "stripe_secret_version" {
  description = "Version of the stored Stripe key. Raise it to store and use a new stripe_secret_key."
  type        = number
  default     = 1
  nullable    = false

  validation {
    condition     = var.stripe_secret_version >= 1 && var.stripe_secret_version % 1 == 0
    error_message = "stripe_secret_version: must be a whole number, at least 1"
  }
}

variable "stripe_read_key" {
  description = "A read-only restricted key for the functions that move no money, as stripe_secret_key."
  type        = string
  default     = null
  ephemeral   = true
  sensitive   = true

  validation {
    condition = var.stripe_read_key == null || can(
      regex("^rk_(test|live)_[A-Za-z0-9_]+$", var.stripe_read_key)
    )
    error_message = "stripe_read_key: must start with rk_test_ or rk_live_, any other key can write"
  }
}

variable "stripe_read_key_version" {
  description = "Version of the stored stripe_read_key, $0.40 a month; raise it to store one. 0: stripe_secret_key."
  type        = number
  default     = 0
  nullable    = false

  validation {
    condition     = var.stripe_read_key_version >= 0 && var.stripe_read_key_version % 1 == 0
    error_message = "stripe_read_key_version: must be a whole number, at least 0"
  }
}

variable "create_refund" {
  description = "Make refunds, $0.76 a month. False deletes their queues: wait until they are empty."
  type        = bool
  default     = true
  nullable    = false
}

variable "stripe_refund_key" {
  description = "A restricted key of Stripe for the refund function alone, as stripe_secret_key."
  type        = string
  default     = null
  ephemeral   = true
  sensitive   = true

  validation {
    condition = var.stripe_refund_key == null || can(
      regex("^rk_(test|live)_[A-Za-z0-9_]+$", var.stripe_refund_key)
    )
    error_message = "stripe_refund_key: must start with rk_test_ or rk_live_, any other key can charge"
  }
}

variable "stripe_refund_key_version" {
  description = "Version of the stored stripe_refund_key, $0.40 a month; raise it to store one. 0: none."
  type        = number
  default     = 0
  nullable    = false

  validation {
    condition     = var.stripe_refund_key_version >= 0 && var.stripe_refund_key_version % 1 == 0
    error_message = "stripe_refund_key_version: must be a whole number, at least 0"
  }
}

variable "create_webhook" {
  description = "Create the endpoint of Stripe's webhooks, $1.10 a month: an API, its function, secret and alarms."
  type        = bool
  default     = true
  nullable    = false
}

variable "webhook_secret" {
  description = "Signing secret of the webhook endpoint, or two, one per line, as stripe_secret_key."
  type        = string
  default     = null
  ephemeral   = true
  sensitive   = true

  validation {
    condition = var.webhook_secret == null || can(
      regex("^whsec_[A-Za-z0-9+/=_-]+(\nwhsec_[A-Za-z0-9+/=_-]+)?$", var.webhook_secret)
    )
    error_message = "webhook_secret: must be one secret that starts with whsec_, or two, one per line"
  }
}

variable "webhook_secret_version" {
  description = "Version of the stored webhook_secret; raise it to store one. 0: there is none yet."
  type        = number
  default     = 0
  nullable    = false

  validation {
    condition     = var.webhook_secret_version >= 0 && var.webhook_secret_version % 1 == 0
    error_message = "webhook_secret_version: must be a whole number, at least 0"
  }
}

# Stripe sends a throttled event again. An event that the row does not show yet costs one
# request at Stripe, or two, so a much higher rate would compete with the order function
# for Stripe's rate limit.
variable "webhook_rate_limit" {
  description = "Webhook requests per second that the API accepts. It answers 429 to the others."
  type        = number
  default     = 50
  nullable    = false

  validation { # API Gateway developer guide: 10,000 per second is the default quota of a region
    condition     = var.webhook_rate_limit >= 1 && var.webhook_rate_limit <= 10000
    error_message = "webhook_rate_limit: must be 1 to 10000"
  }
}

variable "webhook_burst_limit" {
  description = "Webhook requests that the API accepts at once, above webhook_rate_limit."
  type        = number
  default     = 100
  nullable    = false

  validation { # API Gateway developer guide: 5,000 is the default quota of a region
    condition = (
      var.webhook_burst_limit >= 1 && var.webhook_burst_limit <= 5000
      && var.webhook_burst_limit % 1 == 0
    )
    error_message = "webhook_burst_limit: must be a whole number, 1 to 5000"
  }
}

variable "webhook_memory_size" {
  description = "Memory of the webhook function in MB. Its share of a CPU, and its price, are proportional."
  type        = number
  default     = 256
  nullable    = false

  validation {
    condition     = var.webhook_memory_size >= 128 && var.webhook_memory_size <= 256
    error_message = "webhook_memory_size: must be 128 to 256 (the function mostly waits)"
  }
}

variable "webhook_reserved_concurrency" {
  description = "Reserved and greatest concurrency of the webhook function, whose URL is public. Null: none."
  type        = number
  default     = null

  validation { # 0 would stop the function
    condition     = var.webhook_reserved_concurrency == null ? true : var.webhook_reserved_concurrency >= 1
    error_message = "webhook_reserved_concurrency: must be at least 1 (or disable the endpoint at Stripe)"
  }
}

variable "reconcile_minutes" {
  description = "Minutes between two runs of the reconcile function, which settles orders that wait."
  type        = number
  default     = 5
  nullable    = false

  validation {
    condition     = contains(range(1, 61), var.reconcile_minutes)
    error_message = "reconcile_minutes: must be a whole number, 1 to 60"
  }
}

# Stripe's default rate limit is 100 requests per second in live mode, and 25 in a sandbox
# (docs.stripe.com/rate-limits). The order function needs most of it.
variable "reconcile_rate" {
  description = "Orders per second that the reconcile function reads at Stripe. Mind Stripe's rate limit."
  type        = number
  default     = 10
  nullable    = false

  validation {
    condition     = var.reconcile_rate >= 1 && var.reconcile_rate <= 100 && var.reconcile_rate % 1 == 0
    error_message = "reconcile_rate: must be a whole number, 1 to 100"
  }
}

variable "create_intake" {
  description = "Create an API for orders by HTTP, $0.20 a month, of back ends that you trust with prices."
  type        = bool
  default     = false
  nullable    = false
}

variable "intake_jwt" {
  description = <<-EOT
    Tokens that the API accepts instead of IAM signatures, of back ends and not of persons: a caller names
    prices. A token needs one of authorization_scopes, if any is listed. Callers see only orders of their own:
    of the same value of owner_claim. With customer_claim, payment.customer must be the value of that claim.
    Null for IAM signatures.
  EOT
  type = object({
    issuer               = string
    audience             = set(string)
    authorization_scopes = optional(set(string), [])
    owner_claim          = optional(string, "client_id") # the program, as in RFC 9068
    customer_claim       = optional(string)
  })
  default = null

  validation { # API Gateway reads the issuer's keys by HTTPS
    condition     = var.intake_jwt == null ? true : can(regex("^https://[^ ]+$", var.intake_jwt.issuer))
    error_message = "intake_jwt: issuer must be a URL that starts with https://"
  }

  validation {
    condition = var.intake_jwt == null ? true : (
      length(var.intake_jwt.audience) > 0 && !contains(var.intake_jwt.audience, "")
    )
    error_message = "intake_jwt: audience must not be empty, or tokens for other services would be accepted"
  }

  validation {
    condition = var.intake_jwt == null ? true : alltrue([
      for claim in [var.intake_jwt.owner_claim, var.intake_jwt.customer_claim] :
      claim == null || can(regex("^[A-Za-z0-9_.:/-]+$", claim))
    ])
    error_message = "intake_jwt: owner_claim and customer_claim must be names of claims"
  }
}

variable "intake_rate_limit" {
  description = "Requests per second that the API of the intake function accepts. It answers 429 to the others."
  type        = number
  default     = 50
  nullable    = false

  validation { # as webhook_rate_limit
    condition     = var.intake_rate_limit >= 1 && var.intake_rate_limit <= 10000
    error_message = "intake_rate_limit: must be 1 to 10000"
  }
}

variable "intake_burst_limit" {
  description = "Requests that the API of the intake function accepts at once, above intake_rate_limit."
  type        = number
  default     = 100
  nullable    = false

  validation { # as webhook_burst_limit
    condition = (
      var.intake_burst_limit >= 1 && var.intake_burst_limit <= 5000
      && var.intake_burst_limit % 1 == 0
    )
    error_message = "intake_burst_limit: must be a whole number, 1 to 5000"
  }
}

variable "intake_reserved_concurrency" {
  description = "Reserved and greatest concurrency of the intake function. Null: none."
  type        = number
  default     = null

  validation { # 0 would stop the function
    condition     = var.intake_reserved_concurrency == null ? true : var.intake_reserved_concurrency >= 1
    error_message = "intake_reserved_concurrency: must be at least 1 (or set create_intake = false)"
  }
}

variable "stock_tracking" {
  description = "Reserve stock first, $3.13 per million orders. docs/guides/deploy.md: how to turn it off."
  type        = bool
  default     = false
  nullable    = false
}

variable "stock_hold_hours" {
  description = "Hours for which an order that was declined, or waits for its customer, keeps its stock."
  type        = number
  default     = 24
  nullable    = false

  validation {
    condition     = var.stock_hold_hours >= 1 && var.stock_hold_hours % 1 == 0
    error_message = "stock_hold_hours: must be a whole number, at least 1"
  }
}

variable "create_receipts" {
  description = "Send receipts, $0.66 a month and $106 to $166 per million. Before false: docs/guides/deploy.md."
  type        = bool
  default     = false
  nullable    = false

  validation {
    condition = !var.create_receipts || (
      var.receipt_from != null && var.receipt_configuration_set != null
    )
    error_message = "create_receipts: needs receipt_from and receipt_configuration_set"
  }
}

variable "receipt_from" {
  description = "Sender of receipts, ADDRESS or NAME <ADDRESS>, of an identity that SES has verified here."
  type        = string
  default     = null

  validation {
    condition = var.receipt_from == null || can(
      regex("^([A-Za-z0-9 .&'-]+ <[^@ <>\"]+@[a-z0-9.-]+>|[^@ <>\"]+@[a-z0-9.-]+)$", var.receipt_from)
    )
    error_message = "receipt_from: must be ADDRESS or NAME <ADDRESS>, in ASCII, with the domain in lower case"
  }
}

variable "receipt_identity" {
  description = "The identity of receipt_from at SES: a domain or an address. Defaults to its domain."
  type        = string
  default     = null

  validation {
    condition     = var.receipt_identity == null || can(regex("^[^ *?/]+$", var.receipt_identity))
    error_message = "receipt_identity: must be a domain or an address, without wildcards"
  }
}

variable "receipt_configuration_set" {
  description = "Configuration set of receipts at SES, which publishes its events to the default event bus."
  type        = string
  default     = null

  validation { # SES API v2 reference, CreateConfigurationSet
    condition = var.receipt_configuration_set == null || can(
      regex("^[A-Za-z0-9_-]{1,64}$", var.receipt_configuration_set)
    )
    error_message = "receipt_configuration_set: must match ^[A-Za-z0-9_-]{1,64}$"
  }
}

variable "receipt_mode" {
  description = "at_least_once sends a receipt again of which nobody knows whether it was sent."
  type        = string
  default     = "at_most_once"
  nullable    = false

  validation { # the function accepts the same
    condition     = contains(["at_most_once", "at_least_once"], var.receipt_mode)
    error_message = "receipt_mode: must be at_most_once or at_least_once"
  }
}

variable "event_archive_days" {
  description = "Days for which published events can be replayed, $0.023 a GB and month. 0 keeps them forever."
  type        = number
  default     = 90 # as long as the event rows
  nullable    = false

  validation {
    condition     = var.event_archive_days >= 0 && var.event_archive_days % 1 == 0
    error_message = "event_archive_days: must be a whole number, at least 0"
  }
}

variable "create_example_subscriber" {
  description = "Create a rule that sends paid orders to a queue, as an example. Nothing reads the queue."
  type        = bool
  default     = false
  nullable    = false
}

variable "create_operator_policies" {
  description = "Create two IAM policies for people who use scripts/orders. Detach both before you set false."
  type        = bool
  default     = false
  nullable    = false
}

variable "secret_recovery_days" {
  description = "Days for which a deleted secret can be restored and its name is reserved. 0 for none."
  type        = number
  default     = 7
  nullable    = false

  validation { # Secrets Manager API reference, DeleteSecret
    condition     = contains(concat([0], range(7, 31)), var.secret_recovery_days)
    error_message = "secret_recovery_days: must be 0, or 7 to 30"
  }
}

variable "fifo" {
  description = "Create FIFO queues instead of standard queues. It cannot be changed after the first apply."
  type        = bool
  default     = false
  nullable    = false
}

variable "producer_arns" {
  description = "IAM roles and users that may send orders. Once any sender is listed, only listed ones may."
  type        = set(string)
  default     = []
  nullable    = false

  validation {
    condition = alltrue([for arn in var.producer_arns :
      can(regex("^arn:[a-z-]+:iam::[0-9]{12}:(role|user)/[A-Za-z0-9+=,.@_/-]+$", arn))
    ])
    error_message = "producer_arns: must be ARNs of IAM roles or users, without wildcards"
  }
}

variable "producer_rule_arns" {
  description = "Rules that may send orders, with the order queue as their target."
  type        = set(string)
  default     = []
  nullable    = false

  validation {
    condition = alltrue([for arn in var.producer_rule_arns :
      can(regex("^arn:[a-z-]+:events:[a-z0-9-]+:[0-9]{12}:rule/[A-Za-z0-9._/-]+$", arn))
    ])
    error_message = "producer_rule_arns: must be ARNs of rules, without wildcards"
  }
}

variable "producer_topic_arns" {
  description = "SNS topics that may send orders, with the order queue as a subscriber."
  type        = set(string)
  default     = []
  nullable    = false

  validation {
    condition = alltrue([for arn in var.producer_topic_arns :
      can(regex("^arn:[a-z-]+:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_.-]+$", arn))
    ])
    error_message = "producer_topic_arns: must be ARNs of SNS topics, without wildcards"
  }
}

variable "visibility_timeout" {
  description = "Visibility timeout of the order queue in seconds. At least 6 x function_timeout."
  type        = number
  default     = 180
  nullable    = false

  validation { # SQS API reference, CreateQueue
    condition     = var.visibility_timeout <= 43200
    error_message = "visibility_timeout: must be at most 43200 (12 hours)"
  }
}

variable "function_timeout" {
  description = "Timeout of the order function in seconds. At least three times the 10 s budget of one order."
  type        = number
  default     = 30
  nullable    = false

  validation {
    condition     = var.function_timeout >= 30 && var.function_timeout <= 900
    error_message = "function_timeout: must be 30 to 900"
  }
}

variable "memory_size" {
  description = "Memory of the order function in MB. Its share of a CPU, and its price, are proportional."
  type        = number
  default     = 256
  nullable    = false

  validation {
    condition     = var.memory_size >= 128 && var.memory_size <= 256
    error_message = "memory_size: must be 128 to 256 (the function uses less than 64 and mostly waits)"
  }
}

variable "batch_size" {
  description = "Messages per invocation. All orders of a batch are processed concurrently."
  type        = number
  default     = 10
  nullable    = false

  validation { # more needs a batching window, and FIFO queues allow no more
    condition     = var.batch_size >= 1 && var.batch_size <= 10
    error_message = "batch_size: must be 1 to 10"
  }
}

# Stripe's default rate limit of 25 requests per second and endpoint allows 25 orders per
# second, about 12 in a sandbox. Two concurrent batches of ten orders that take a second
# stay below. Ask Stripe for a higher limit first (docs.stripe.com/rate-limits).
variable "maximum_concurrency" {
  description = "Batches processed concurrently, each of batch_size orders. Mind Stripe's rate limit."
  type        = number
  default     = 2
  nullable    = false

  validation { # Lambda developer guide, "Setting maximum concurrency for SQS event sources"
    condition     = var.maximum_concurrency >= 2 && var.maximum_concurrency <= 1000
    error_message = "maximum_concurrency: must be 2 to 1000 (to charge more slowly, lower batch_size)"
  }
}

variable "processing" {
  description = "Process orders. False leaves them in the queue; an apply without it resumes processing."
  type        = bool
  default     = true
  nullable    = false
}

variable "reserved_concurrency" {
  description = "Reserved concurrency of the order function, at least one per concurrent batch. Null: none."
  type        = number
  default     = null
}

variable "provisioned_pollers" {
  description = "Pollers instead of maximum_concurrency, charged by the hour; ten batches each: mind Stripe's limit."
  type        = object({ minimum = number, maximum = number })
  default     = null

  validation { # Lambda API reference, ProvisionedPollerConfig, for SQS
    condition = var.provisioned_pollers == null ? true : (
      var.provisioned_pollers.minimum >= 2 && var.provisioned_pollers.minimum <= 200
      && var.provisioned_pollers.maximum >= var.provisioned_pollers.minimum
      && var.provisioned_pollers.maximum <= 2000
    )
    error_message = "provisioned_pollers: minimum must be 2 to 200, maximum must be minimum to 2000"
  }
}

variable "architecture" {
  description = "arm64, or x86_64 for zips of make package GOARCH=amd64, whose duration costs a quarter more."
  type        = string
  default     = "arm64"
  nullable    = false

  validation {
    condition     = contains(["arm64", "x86_64"], var.architecture)
    error_message = "architecture: must be arm64 or x86_64"
  }
}

variable "tracing" {
  description = "Trace invocations with X-Ray, which charges for each trace."
  type        = bool
  default     = false
  nullable    = false
}

variable "log_retention_days" {
  description = "Days for which logs are kept, $0.03 a GB. At least 30: orders may be redriven after weeks."
  type        = number
  default     = 90
  nullable    = false

  validation { # CloudWatch Logs API reference, PutRetentionPolicy
    condition = contains(
      [30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653],
      var.log_retention_days
    )
    error_message = "log_retention_days: must be a retention that CloudWatch Logs supports, at least 30"
  }
}

variable "permissions_boundary" {
  description = "ARN of the permissions boundary of every role. Null for none."
  type        = string
  default     = null

  validation {
    condition = var.permissions_boundary == null || can(
      regex("^arn:[a-z-]+:iam::([0-9]{12}|aws):policy/[A-Za-z0-9+=,.@_/-]+$", var.permissions_boundary)
    )
    error_message = "permissions_boundary: must be the ARN of an IAM policy"
  }
}

variable "kms_key_arn" {
  description = "Your KMS key of queues, table and secrets, $1 a month. Null for keys of AWS, which are free."
  type        = string
  default     = null

  validation {
    condition = var.kms_key_arn == null || can(
      regex("^arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$", var.kms_key_arn)
    )
    error_message = "kms_key_arn: must be the ARN of a key, not of an alias"
  }
}

variable "previous_kms_key_arns" {
  description = "Earlier values of kms_key_arn, needed for older messages and backups."
  type        = set(string)
  default     = []
  nullable    = false

  validation {
    condition = alltrue([for arn in var.previous_kms_key_arns :
      can(regex("^arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$", arn))
    ])
    error_message = "previous_kms_key_arns: must be ARNs of keys, not of aliases"
  }
}

variable "orders_table_name" {
  description = "Name of a table that was restored from a backup: docs/guides/operate.md. Null: its own."
  type        = string
  default     = null

  validation { # DynamoDB API reference, CreateTable
    condition = var.orders_table_name == null || can(
      regex("^[A-Za-z0-9_.-]{3,255}$", var.orders_table_name)
    )
    error_message = "orders_table_name: must match ^[A-Za-z0-9_.-]{3,255}$"
  }
}

variable "warm_throughput" {
  description = "Reads and writes per second that a new table supports, charged once. Null: the default, free."
  type        = object({ read = number, write = number })
  default     = null

  validation { # DynamoDB developer guide, "DynamoDB warm throughput": defaults of a new table
    condition = var.warm_throughput == null ? true : (
      var.warm_throughput.read >= 12000 && var.warm_throughput.write >= 4000
    )
    error_message = "warm_throughput: must be at least 12000 reads and 4000 writes, which every new table has"
  }
}

variable "deletion_protection" {
  description = "Protect the orders table against deletion. Its rows prevent duplicate charges."
  type        = bool
  default     = true
  nullable    = false
}

variable "alarms" {
  description = "all, none, or essential: at least one for each failure that lasts. $0.10 a month for each metric."
  type        = string
  default     = "essential"
  nullable    = false

  validation {
    condition     = contains(["all", "essential", "none"], var.alarms)
    error_message = "alarms: must be all, essential or none"
  }
}

variable "create_dashboard" {
  description = "Create a CloudWatch dashboard, $3 a month beyond the first three of an account."
  type        = bool
  default     = true
  nullable    = false
}

variable "alarm_topic_arn" {
  description = "SNS topic that alarms notify. Without it, alarms change state and send no notification."
  type        = string
  default     = null

  validation {
    condition = var.alarm_topic_arn == null || can(
      regex("^arn:[a-z-]+:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_.-]+$", var.alarm_topic_arn)
    )
    error_message = "alarm_topic_arn: must be the ARN of an SNS topic"
  }
}

variable "package_dir" {
  description = "Folder of the zips of make package or of a release. infra/terraform passes build/package."
  type        = string
  default     = null
}

variable "package_s3" {
  description = "The zips in a bucket of the region, instead of package_dir; checksums has their SHA256SUMS."
  type        = object({ bucket = string, prefix = optional(string, ""), checksums = string })
  default     = null

  validation {
    condition     = var.package_s3 == null ? true : can(regex("^([^/].*/)?$", var.package_s3.prefix))
    error_message = "package_s3: prefix must be empty, or end with / and not start with it"
  }
}
