variable "name" {
  description = "First part of every name."
  type        = string
  default     = "orderonce"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]*$", var.name))
    error_message = "Want lower-case letters, digits or '-', the first a letter."
  }
}

variable "environment" {
  description = "Second part of every name. Deployments that share an AWS account and a region need different ones."
  type        = string
  default     = "dev"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z0-9-]+$", var.environment))
    error_message = "Want lower-case letters, digits or '-'."
  }

  validation { # a scope has at most 32 characters, of which the default one uses seven for '-' and a hash
    condition     = length("${var.name}-${var.environment}") <= (var.scope == null ? 25 : 32)
    error_message = "Want at most 25 characters in name, '-' and environment together, or 32 if scope is given."
  }
}

variable "scope" {
  description = "Part of every idempotency key and intent; null for name, environment and a hash of account and region. Never change it later: orders that are under way could not settle."
  type        = string
  default     = null

  validation { # order.NewScope refuses anything else when the function starts
    condition     = var.scope == null || can(regex("^[a-z][a-z0-9-]{0,31}$", var.scope))
    error_message = "Want 1 to 32 lower-case letters, digits or '-', the first a letter."
  }
}

variable "region" {
  description = "AWS region; null for that of the environment or the profile."
  type        = string
  default     = null
}

variable "tags" {
  description = "Tags of every resource, besides Application, Environment and ManagedBy."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = length(setintersection(keys(var.tags), ["Application", "Environment", "ManagedBy"])) == 0
    error_message = "Application, Environment and ManagedBy are set by the module."
  }
}

variable "stripe_secret_key" {
  description = "Stripe key, for the first apply and to rotate; null otherwise. Set it by TF_VAR_stripe_secret_key."
  type        = string
  default     = null
  ephemeral   = true
  sensitive   = true

  validation {
    condition     = var.stripe_secret_key == null || can(regex("^(sk|rk)_(test|live)_[A-Za-z0-9_]+$", var.stripe_secret_key))
    error_message = "Want a key that starts with sk_test_, sk_live_, rk_test_ or rk_live_."
  }
}

variable "stripe_secret_version" {
  description = "Raise it together with a new stripe_secret_key: the new key is stored, and used from the next cold start on."
  type        = number
  default     = 1
  nullable    = false

  validation {
    condition     = var.stripe_secret_version >= 1 && floor(var.stripe_secret_version) == var.stripe_secret_version
    error_message = "Want a whole number, at least 1."
  }
}

variable "secret_recovery_days" {
  description = "Days for which a destroyed secret can be restored, and its name stays taken; 0 deletes it at once."
  type        = number
  default     = 7
  nullable    = false

  validation { # Secrets Manager API reference, DeleteSecret
    condition     = contains(concat([0], range(7, 31)), var.secret_recovery_days)
    error_message = "Want 0 or 7 to 30."
  }
}

variable "fifo" {
  description = "FIFO queues instead of standard ones. A plan that changes it is refused, because it would replace both queues."
  type        = bool
  default     = false
  nullable    = false
}

variable "producer_arns" {
  description = "IAM roles and users that may send orders, also of other accounts. Once a producer, rule or topic is named, nobody else may send."
  type        = set(string)
  default     = []
  nullable    = false

  validation {
    condition = alltrue([for arn in var.producer_arns :
      can(regex("^arn:[a-z-]+:iam::[0-9]{12}:(role|user)/[A-Za-z0-9+=,.@_/-]+$", arn))
    ])
    error_message = "Want ARNs of IAM roles or users, without wildcards."
  }
}

variable "producer_rule_arns" {
  description = "EventBridge rules that may send orders: they have the queue as a target."
  type        = set(string)
  default     = []
  nullable    = false

  validation {
    condition = alltrue([for arn in var.producer_rule_arns :
      can(regex("^arn:[a-z-]+:events:[a-z0-9-]+:[0-9]{12}:rule/[A-Za-z0-9._/-]+$", arn))
    ])
    error_message = "Want ARNs of EventBridge rules, without wildcards."
  }
}

variable "producer_topic_arns" {
  description = "SNS topics that may send orders: the queue subscribes to them."
  type        = set(string)
  default     = []
  nullable    = false

  validation {
    condition = alltrue([for arn in var.producer_topic_arns :
      can(regex("^arn:[a-z-]+:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_.-]+$", arn))
    ])
    error_message = "Want ARNs of SNS topics, without wildcards."
  }
}

variable "visibility_timeout" {
  description = "Seconds for which a delivered message is hidden; at least six times function_timeout."
  type        = number
  default     = 180
  nullable    = false

  validation { # SQS API reference, CreateQueue
    condition     = var.visibility_timeout <= 43200
    error_message = "Want at most 43200, twelve hours."
  }
}

variable "function_timeout" {
  description = "Seconds that the order function may take for a batch; at least three times the 10 s budget of one order."
  type        = number
  default     = 30
  nullable    = false

  validation {
    condition     = var.function_timeout >= 30 && var.function_timeout <= 900
    error_message = "Want 30 to 900."
  }
}

variable "memory_size" {
  description = "Megabytes of the order function. Its share of a CPU grows with them."
  type        = number
  default     = 256
  nullable    = false

  validation {
    condition     = var.memory_size >= 128 && var.memory_size <= 256
    error_message = "Want 128 to 256: the function needs less than 64, and waits for Stripe most of the time."
  }
}

variable "batch_size" {
  description = "Messages of one invocation; all of them are worked on at once."
  type        = number
  default     = 10
  nullable    = false

  validation { # more needs a batching window, and FIFO queues allow no more
    condition     = var.batch_size >= 1 && var.batch_size <= 10
    error_message = "Want 1 to 10."
  }
}

# Stripe's default limit of 25 calls a second for each endpoint is 25 orders a second, about 12 in a sandbox. Two batches of ten
# orders that take about a second each stay below; ask Stripe for more before raising it (docs.stripe.com/rate-limits).
variable "maximum_concurrency" {
  description = "Batches worked on at once; times batch_size it is the orders in flight. Mind Stripe's rate limit."
  type        = number
  default     = 2
  nullable    = false

  validation { # Lambda developer guide, "Setting maximum concurrency for SQS event sources"
    condition     = var.maximum_concurrency >= 2 && var.maximum_concurrency <= 1000
    error_message = "Want 2 to 1000."
  }
}

variable "processing" {
  description = "Take orders from the queue. With false they wait there; an apply without the variable takes them again."
  type        = bool
  default     = true
  nullable    = false
}

variable "reserved_concurrency" {
  description = "Executions kept for the order function, at least maximum_concurrency or ten for each provisioned poller; null shares the account's."
  type        = number
  default     = null
}

variable "provisioned_pollers" {
  description = "Pollers of the queue that Lambda keeps ready, instead of maximum_concurrency; null for pollers on demand. Each runs up to ten batches at once, so even the minimum exceeds Stripe's default rate limit."
  type        = object({ minimum = number, maximum = number })
  default     = null

  validation { # Lambda API reference, ProvisionedPollerConfig, for SQS
    condition = var.provisioned_pollers == null ? true : (
      var.provisioned_pollers.minimum >= 2 && var.provisioned_pollers.minimum <= 200
      && var.provisioned_pollers.maximum >= var.provisioned_pollers.minimum && var.provisioned_pollers.maximum <= 2000
    )
    error_message = "Want a minimum of 2 to 200, and a maximum from the minimum to 2000."
  }
}

variable "tracing" {
  description = "Trace invocations with X-Ray."
  type        = bool
  default     = false
  nullable    = false
}

variable "log_retention_days" {
  description = "Days that log lines are kept."
  type        = number
  default     = 90
  nullable    = false

  validation { # CloudWatch Logs API reference, PutRetentionPolicy
    condition = contains(
      [30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653], var.log_retention_days
    )
    error_message = "Want a number of days that CloudWatch Logs knows, at least 30: a redrive may bring an order back after weeks."
  }
}

variable "permissions_boundary" {
  description = "ARN of the policy that bounds the function's role; null for none."
  type        = string
  default     = null

  validation {
    condition     = var.permissions_boundary == null || can(regex("^arn:[a-z-]+:iam::([0-9]{12}|aws):policy/[A-Za-z0-9+=,.@_/-]+$", var.permissions_boundary))
    error_message = "Want the ARN of an IAM policy."
  }
}

variable "kms_key_arn" {
  description = "Customer managed KMS key for queues, table and secret; null for keys that AWS owns or manages."
  type        = string
  default     = null

  validation {
    condition     = var.kms_key_arn == null || can(regex("^arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$", var.kms_key_arn))
    error_message = "Want the ARN of a key, not of an alias."
  }
}

variable "previous_kms_key_arns" {
  description = "Keys that kms_key_arn was before. The function may still use them, for messages and backups of their time."
  type        = set(string)
  default     = []
  nullable    = false

  validation {
    condition = alltrue([for arn in var.previous_kms_key_arns :
      can(regex("^arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$", arn))
    ])
    error_message = "Want ARNs of keys, not of aliases."
  }
}

variable "orders_table_name" {
  description = "Name of the orders table; null for name, environment and \"orders\". Only for a table that was restored from a backup: docs/guides/operate.md has the steps."
  type        = string
  default     = null

  validation { # DynamoDB API reference, CreateTable
    condition     = var.orders_table_name == null || can(regex("^[A-Za-z0-9_.-]{3,255}$", var.orders_table_name))
    error_message = "Want 3 to 255 letters, digits, '_', '.' or '-'."
  }
}

variable "warm_throughput" {
  description = "Reads and writes a second that a new table bears at once; null for DynamoDB's default. Ignored for a table that exists, because the provider replaces a table to lower it."
  type        = object({ read = number, write = number })
  default     = null

  validation { # DynamoDB developer guide, "DynamoDB warm throughput": the defaults of a new on-demand table
    condition     = var.warm_throughput == null ? true : var.warm_throughput.read >= 12000 && var.warm_throughput.write >= 4000
    error_message = "Want at least 12000 reads and 4000 writes, which every new table has."
  }
}

variable "deletion_protection" {
  description = "Refuse to delete the orders table. Its rows are what keeps an order from being charged twice."
  type        = bool
  default     = true
  nullable    = false
}

variable "alarm_topic_arn" {
  description = "SNS topic that hears of alarms; null raises them silently."
  type        = string
  default     = null

  validation {
    condition     = var.alarm_topic_arn == null || can(regex("^arn:[a-z-]+:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_.-]+$", var.alarm_topic_arn))
    error_message = "Want the ARN of an SNS topic."
  }
}

variable "package_dir" {
  description = "Where make package left the zips; null for build/package of this clone."
  type        = string
  default     = null
}
