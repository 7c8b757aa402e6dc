locals {
  queue_type = var.fifo ? "FIFO" : "standard"

  # The queues of all parts, by the end of their names. After so many receives SQS moves a
  # message to the dead-letter queue of the same name.
  queues = { for name, queue in merge([for part in local.parts : try(part.queues, {})]...) : name => merge({
    function   = null  # which receives the messages, and parks them in the dead-letter queue
    visibility = null  # timeout in seconds
    max_size   = null  # of a message, in bytes
    fifo       = false # EventBridge sends no message group
    kms_key    = null  # EventBridge could use yours only if its key policy allowed that
    sender     = null  # the only function that may send to the dead-letter queue

    provisioned_pollers = null

    # A backstop: the function itself parks with a reason, after six days at the latest. SQS
    # moves only messages that kill the function, or all of them while it cannot start.
    # 1,000 is the maximum of SQS (SQS developer guide, "Configure a dead-letter queue using
    # the Amazon SQS console"), because deliveries in an outage count as well: with 50, an
    # outage of eight hours would park every order without a reason. A function that cannot
    # start uses one receive per visibility timeout, so 1,000 receives last 50 hours.
    receives = 1000
  }, queue) }

  # What queues to which producers send have in common.
  produced_queue = {
    enabled = var.processing
    fifo    = var.fifo
    kms_key = var.kms_key_arn

    # The function reads bodies of up to 256 KiB. Twice that leaves room for attributes,
    # also for those of a redriven message, and ten messages still fit into the 6 MB of one
    # invocation.
    max_size = 512 * 1024
  }

  # What a function may do with its queue, and with the dead-letter queue.
  receiving = [
    "sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes",
  ]
  parking = ["sqs:SendMessage", "sqs:GetQueueAttributes"]

  dead_letters = merge(
    { for name, queue in local.queues : "${name}-dead" => merge(queue, { of = name }) },
    { unpublished = { function = null, fifo = false, kms_key = var.kms_key_arn, sender = "publish" } }, # publish.tf
  )
  fifo_names = { for name, queue in merge(local.queues, local.dead_letters) : name => ".fifo" if queue.fifo }
  queue_names = { for name in keys(merge(local.queues, local.dead_letters)) :
    name => join("", concat(["${local.prefix}-${name}"], [lookup(local.fifo_names, name, "")]))
  }

  # A statement has at most 7 actions (SQS developer guide, "Amazon SQS policy quotas"), so
  # these are the ones that read, write or move messages.
  message_actions = [
    "sqs:SendMessage", "sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility",
    "sqs:GetQueueAttributes", "sqs:SetQueueAttributes", "sqs:PurgeQueue",
  ]
}

resource "aws_sqs_queue" "queues" {
  for_each = local.queues

  name                       = local.queue_names[each.key]
  visibility_timeout_seconds = each.value.visibility
  message_retention_seconds  = 7 * 24 * 60 * 60
  receive_wait_time_seconds  = 20
  max_message_size           = each.value.max_size

  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.dead_letters["${each.key}-dead"].arn
    maxReceiveCount     = each.value.receives
  })

  fifo_queue                  = each.value.fifo ? true : null
  content_based_deduplication = each.value.fifo ? true : null # SQS drops the same body within 5 minutes
  deduplication_scope         = each.value.fifo ? "messageGroup" : null
  fifo_throughput_limit       = each.value.fifo ? "perMessageGroupId" : null

  sqs_managed_sse_enabled           = each.value.kms_key == null ? true : null
  kms_master_key_id                 = each.value.kms_key
  kms_data_key_reuse_period_seconds = each.value.kms_key == null ? null : 300

  lifecycle {
    # With less, SQS would deliver a slow batch again while it is processed (Lambda
    # developer guide, "Configuring a queue to use with Lambda").
    precondition {
      condition = each.value.function == null ? true : (
        each.value.visibility >= 6 * local.functions[each.value.function].timeout
      )
      error_message = "visibility_timeout: must be at least 6 x the timeout of the function that receives"
    }
  }

  depends_on = [aws_iam_role_policy.keys]
}

# The retention is the maximum of SQS. On a standard queue a message keeps its age when it is
# moved, so a retention like the queue's would leave no time to handle it.
resource "aws_sqs_queue" "dead_letters" {
  for_each = local.dead_letters

  name                      = local.queue_names[each.key]
  message_retention_seconds = 14 * 24 * 60 * 60
  receive_wait_time_seconds = each.value.function != null ? 20 : null
  max_message_size          = each.value.function != null ? 1024 * 1024 : null # a message and why it was parked

  fifo_queue                  = each.value.fifo ? true : null
  content_based_deduplication = each.value.fifo ? false : null # the function sends a deduplication id
  deduplication_scope         = each.value.fifo ? "messageGroup" : null
  fifo_throughput_limit       = each.value.fifo ? "perMessageGroupId" : null

  sqs_managed_sse_enabled           = each.value.kms_key == null ? true : null
  kms_master_key_id                 = each.value.kms_key
  kms_data_key_reuse_period_seconds = each.value.kms_key == null ? null : 300

  depends_on = [aws_iam_role_policy.keys]
}

# A separate resource, because a queue and its dead-letter queue refer to each other.
resource "aws_sqs_queue_redrive_allow_policy" "dead_letters" {
  for_each = { for name, queue in local.dead_letters : name => queue if queue.function != null }

  queue_url = aws_sqs_queue.dead_letters[each.key].url
  redrive_allow_policy = jsonencode({
    redrivePermission = "byQueue"
    sourceQueueArns   = [aws_sqs_queue.queues[each.value.of].arn]
  })
}

# No filter_criteria: Lambda deletes messages of a queue that a filter does not match. The
# function validates them instead, and parks invalid ones with a reason.
resource "aws_lambda_event_source_mapping" "queues" {
  for_each = { for name, queue in local.queues : name => queue if queue.function != null }

  enabled                 = try(each.value.enabled, true) # an apply enables a mapping that was disabled by hand
  event_source_arn        = aws_sqs_queue.queues[each.key].arn
  function_name           = aws_lambda_alias.live[each.value.function].arn
  batch_size              = try(each.value.batch_size, 10)
  function_response_types = ["ReportBatchItemFailures"]

  # Either scaling_config or provisioned_poller_config: Lambda rejects a mapping with
  # both.
  dynamic "scaling_config" {
    for_each = each.value.provisioned_pollers == null ? [each.value.concurrency] : []

    content {
      maximum_concurrency = scaling_config.value
    }
  }

  dynamic "provisioned_poller_config" {
    for_each = each.value.provisioned_pollers == null ? [] : [each.value.provisioned_pollers]

    content {
      minimum_pollers = provisioned_poller_config.value.minimum
      maximum_pollers = provisioned_poller_config.value.maximum
    }
  }

  metrics_config {
    metrics = ["EventCount"]
  }

  lifecycle {
    # The mapping ignores reserved concurrency. If it is lower, Lambda throttles batches,
    # and each throttled batch uses up a receive of its messages.
    precondition {
      condition = (
        try(local.functions[each.value.function].reserved, null) == null ? true :
        local.functions[each.value.function].reserved >= each.value.concurrency
      )
      error_message = "reserved_concurrency: must be at least ${each.value.concurrency}, one per batch"
    }
  }

  # Lambda rejects a mapping whose function is not allowed to read the queue.
  depends_on = [aws_iam_role_policy.functions]
}

locals {
  # Rules of EventBridge that may send to a queue.
  sending_rules = merge({ for name in local.produced : name => sort(var.producer_rule_arns) }, [for name, arns in {
    paid     = aws_cloudwatch_event_rule.paid[*].arn
    receipts = values(aws_cloudwatch_event_rule.receipts)[*].arn
  } : { (name) = arns, "${name}-dead" = arns }]...)

  # The queues of producers, and who may send to them. While that is empty, IAM policies of
  # this account decide. Once it is not, the intake function must be among those of orders.
  produced    = [for name in ["orders", "refunds"] : name if contains(keys(local.queues), name)]
  sender_arns = setunion(var.producer_arns, var.producer_rule_arns, var.producer_topic_arns)
  producer_arns = { for queue in local.produced : queue => concat(
    sort(var.producer_arns), [for name, role in aws_iam_role.functions : role.arn
      if name == "intake" && queue == "orders" && length(local.sender_arns) > 0
    ],
  ) }

  # The conditions of who may not send. Requests of AWS services do not come from a principal
  # of this account. The condition also excludes them, so that it never blocks those.
  other_senders = merge(
    { for name, queue in local.dead_letters : name => {
      ArnNotEquals = { "aws:PrincipalArn" = aws_iam_role.functions[queue.sender].arn }
    } if queue.sender != null },
    { for name in local.produced : name => merge(
      { for arns in [local.producer_arns[name]] : "ArnNotEquals" => { "aws:PrincipalArn" = arns } if length(arns) > 0 },
      { Bool = { "aws:PrincipalIsAWSService" = "false" } },
    ) if length(local.sender_arns) > 0 },
  )
}

# Denials name this account only: other accounts have no access without a statement that
# allows it. aws:SourceArn is compared in full and contains the account, so
# aws:SourceAccount is not needed (IAM user guide, "The confused deputy problem").
resource "aws_sqs_queue_policy" "queues" {
  for_each = merge(aws_sqs_queue.queues, aws_sqs_queue.dead_letters)

  queue_url = each.value.url
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [for statement in concat(
      [{
        Sid       = "DenyWithoutTLS"
        Effect    = "Deny"
        Principal = { AWS = local.account }
        Action    = local.message_actions
        Condition = { Bool = { "aws:SecureTransport" = "false" } }
      }],
      [for arns in [lookup(local.producer_arns, each.key, [])] : {
        Sid       = "ProducersSend"
        Effect    = "Allow"
        Principal = { AWS = arns }
        Action    = "sqs:SendMessage"
        Condition = { Bool = { "aws:SecureTransport" = "true" } }
      } if length(arns) > 0],
      [for sending_service, arns in {
        events = lookup(local.sending_rules, each.key, [])
        sns    = contains(local.produced, each.key) ? sort(var.producer_topic_arns) : []
        } : {
        Sid       = { events = "RulesSend", sns = "TopicsSend" }[sending_service]
        Effect    = "Allow"
        Principal = { Service = "${sending_service}.amazonaws.com" }
        Action    = "sqs:SendMessage"
        Condition = {
          ArnEquals    = { "aws:SourceArn" = arns }
          BoolIfExists = { "aws:SecureTransport" = "true" }
        }
      } if length(arns) > 0],
      [for condition in [lookup(local.other_senders, each.key, null)] : {
        Sid       = "DenyOtherSenders"
        Effect    = "Deny"
        Principal = { AWS = local.account }
        Action    = "sqs:SendMessage"
        Condition = condition
      } if condition != null],
    ) : merge(statement, { Resource = each.value.arn })]
  })
}
