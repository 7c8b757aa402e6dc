# docs/reference/iam.md explains each statement, and a test compares the two. Every
# statement names its actions and ARNs.

resource "aws_iam_role" "functions" {
  for_each = local.functions

  name        = "${local.prefix}-${each.key}"
  description = "Execution role of the ${each.key} function of ${local.prefix}"

  permissions_boundary = var.permissions_boundary

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "AssumedByLambda"
      Effect    = "Allow"
      Principal = { Service = "lambda.amazonaws.com" }
      Action    = "sts:AssumeRole"
    }]
  })
}

resource "aws_iam_role_policy" "order" {
  name = "order"
  role = aws_iam_role.functions["order"].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [
        {
          Sid    = "ReceiveOrders"
          Effect = "Allow"
          Action = [
            "sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility",
            "sqs:GetQueueAttributes",
          ]
          Resource = aws_sqs_queue.orders.arn
        },
        {
          Sid      = "ParkMessages"
          Effect   = "Allow"
          Action   = ["sqs:SendMessage", "sqs:GetQueueAttributes"]
          Resource = aws_sqs_queue.dead_letters.arn
        },
        {
          Sid      = "WriteOrders"
          Effect   = "Allow"
          Action   = ["dynamodb:UpdateItem", "dynamodb:PutItem", "dynamodb:Query", "dynamodb:GetItem"]
          Resource = aws_dynamodb_table.orders.arn
        },
        {
          Sid      = "ReadStripeKey"
          Effect   = "Allow"
          Action   = "secretsmanager:GetSecretValue"
          Resource = local.stripe_keys.order.arn
        },
        {
          Sid    = "WriteLogs"
          Effect = "Allow"
          Action = ["logs:CreateLogStream", "logs:PutLogEvents"]
          # The only wildcard, because Lambda names the log streams.
          Resource = "${aws_cloudwatch_log_group.functions["order"].arn}:log-stream:*"
        },
      ],
      local.stock_statements,
      [for statement in [{
        Sid      = "LoadDeclinedOrders"
        Effect   = "Allow"
        Action   = "dynamodb:Query"
        Resource = aws_dynamodb_table.orders.arn
      }] : statement if var.stock_tracking],
      var.tracing ? [{
        Sid      = "WriteTraces"
        Effect   = "Allow"
        Action   = ["xray:PutTraceSegments", "xray:PutTelemetryRecords"]
        Resource = "*" # X-Ray supports no resources for either action
      }] : [],
    )
  })
}

resource "aws_iam_role_policy" "webhook" {
  count = var.create_webhook ? 1 : 0

  name = "webhook"
  role = aws_iam_role.functions["webhook"].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [
        {
          Sid      = "LoadOrders"
          Effect   = "Allow"
          Action   = ["dynamodb:Query", "dynamodb:GetItem"]
          Resource = aws_dynamodb_table.orders.arn
        },
        {
          Sid      = "SettleOrders"
          Effect   = "Allow"
          Action   = ["dynamodb:UpdateItem", "dynamodb:PutItem"]
          Resource = aws_dynamodb_table.orders.arn
        },
        {
          Sid      = "ReadKeyAndWebhookSecret"
          Effect   = "Allow"
          Action   = "secretsmanager:GetSecretValue"
          Resource = [local.stripe_keys.webhook.arn, aws_secretsmanager_secret.webhook[0].arn]
        },
        {
          Sid      = "WriteWebhookLogs"
          Effect   = "Allow"
          Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
          Resource = "${aws_cloudwatch_log_group.functions["webhook"].arn}:log-stream:*"
        },
      ],
      local.stock_statements,
      var.tracing ? [{
        Sid      = "WriteWebhookTraces"
        Effect   = "Allow"
        Action   = ["xray:PutTraceSegments", "xray:PutTelemetryRecords"]
        Resource = "*" # as above
      }] : [],
    )
  })
}

resource "aws_iam_role_policy" "reconcile" {
  name = "reconcile"
  role = aws_iam_role.functions["reconcile"].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [
        {
          Sid      = "FindAndLoadWaitingOrders"
          Effect   = "Allow"
          Action   = "dynamodb:Query"
          Resource = [aws_dynamodb_table.orders.arn, "${aws_dynamodb_table.orders.arn}/index/open"]
        },
        {
          Sid      = "LoadRefunds"
          Effect   = "Allow"
          Action   = "dynamodb:GetItem"
          Resource = aws_dynamodb_table.orders.arn
        },
        {
          Sid      = "SettleWaitingOrders"
          Effect   = "Allow"
          Action   = ["dynamodb:UpdateItem", "dynamodb:PutItem"]
          Resource = aws_dynamodb_table.orders.arn
        },
        {
          Sid      = "ReadKeyToReconcile"
          Effect   = "Allow"
          Action   = "secretsmanager:GetSecretValue"
          Resource = local.stripe_keys.reconcile.arn
        },
        {
          Sid      = "WriteReconcileLogs"
          Effect   = "Allow"
          Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
          Resource = "${aws_cloudwatch_log_group.functions["reconcile"].arn}:log-stream:*"
        },
      ],
      local.stock_statements,
      var.tracing ? [{
        Sid      = "WriteReconcileTraces"
        Effect   = "Allow"
        Action   = ["xray:PutTraceSegments", "xray:PutTelemetryRecords"]
        Resource = "*" # as above
      }] : [],
    )
  })
}

# No access to the table, its index or Stripe: an event is complete in the stream.
resource "aws_iam_role_policy" "publish" {
  name = "publish"
  role = aws_iam_role.functions["publish"].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [
        {
          Sid    = "ReadStream"
          Effect = "Allow"
          Action = [
            "dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator",
            "dynamodb:ListStreams",
          ]
          Resource = aws_dynamodb_table.orders.stream_arn
        },
        {
          Sid      = "PublishEvents"
          Effect   = "Allow"
          Action   = "events:PutEvents"
          Resource = aws_cloudwatch_event_bus.orders.arn
        },
        {
          Sid      = "ReportUnpublished"
          Effect   = "Allow"
          Action   = "sqs:SendMessage"
          Resource = aws_sqs_queue.unpublished.arn
        },
        {
          Sid      = "WritePublishLogs"
          Effect   = "Allow"
          Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
          Resource = "${aws_cloudwatch_log_group.functions["publish"].arn}:log-stream:*"
        },
      ],
      var.tracing ? [{
        Sid      = "WritePublishTraces"
        Effect   = "Allow"
        Action   = ["xray:PutTraceSegments", "xray:PutTelemetryRecords"]
        Resource = "*" # as above
      }] : [],
    )
  })
}

# IAM has no condition on a sort key, so a put could replace any row. The function puts on the
# condition that there is none. The permission is limited to the attributes of a registration:
# a put without status makes no order, and an order row that it replaced would be unreadable
# and parked, not charged again.
resource "aws_iam_role_policy" "intake" {
  count = var.create_intake ? 1 : 0

  name = "intake"
  role = aws_iam_role.functions["intake"].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [
        {
          Sid      = "FindRegisteredOrders"
          Effect   = "Allow"
          Action   = "dynamodb:Query"
          Resource = aws_dynamodb_table.orders.arn
        },
        {
          Sid      = "RegisterOrders"
          Effect   = "Allow"
          Action   = "dynamodb:PutItem"
          Resource = aws_dynamodb_table.orders.arn
          Condition = { "ForAllValues:StringEquals" = { "dynamodb:Attributes" = [
            "orderId", "sk", "fingerprint", "amount", "currency", "caller", "createdAt", "openShard", "dueAt",
          ] } }
        },
        {
          Sid      = "MarkSentOrders"
          Effect   = "Allow"
          Action   = "dynamodb:UpdateItem"
          Resource = aws_dynamodb_table.orders.arn
          Condition = { "ForAllValues:StringEquals" = { "dynamodb:Attributes" = [
            "orderId", "sk", "openShard", "dueAt",
          ] } }
        },
        {
          Sid      = "SendRegisteredOrders"
          Effect   = "Allow"
          Action   = "sqs:SendMessage"
          Resource = aws_sqs_queue.orders.arn
        },
        {
          Sid      = "WriteIntakeLogs"
          Effect   = "Allow"
          Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
          Resource = "${aws_cloudwatch_log_group.functions["intake"].arn}:log-stream:*"
        },
      ],
      var.tracing ? [{
        Sid      = "WriteIntakeTraces"
        Effect   = "Allow"
        Action   = ["xray:PutTraceSegments", "xray:PutTelemetryRecords"]
        Resource = "*" # as above
      }] : [],
    )
  })
}

# No access to the orders table: an event has all that a receipt needs, except the address,
# which is at Stripe.
resource "aws_iam_role_policy" "receipt" {
  count = var.create_receipts ? 1 : 0

  name = "receipt"
  role = aws_iam_role.functions["receipt"].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [
        {
          Sid    = "ReceiveReceiptEvents"
          Effect = "Allow"
          Action = [
            "sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility",
            "sqs:GetQueueAttributes",
          ]
          Resource = aws_sqs_queue.receipts[0].arn
        },
        {
          Sid      = "ParkReceiptEvents"
          Effect   = "Allow"
          Action   = ["sqs:SendMessage", "sqs:GetQueueAttributes"]
          Resource = aws_sqs_queue.receipts_dead[0].arn
        },
        {
          Sid      = "WriteReceipts"
          Effect   = "Allow"
          Action   = ["dynamodb:GetItem", "dynamodb:PutItem"]
          Resource = aws_dynamodb_table.receipts[0].arn
        },
        {
          Sid       = "SendReceipts"
          Effect    = "Allow"
          Action    = "ses:SendEmail"
          Resource  = local.receipt_mail_arns
          Condition = { StringEquals = { "ses:FromAddress" = local.receipt_address } }
        },
        {
          Sid      = "ReadKeyForReceipts"
          Effect   = "Allow"
          Action   = "secretsmanager:GetSecretValue"
          Resource = local.stripe_keys.receipt.arn
        },
        {
          Sid      = "WriteReceiptLogs"
          Effect   = "Allow"
          Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
          Resource = "${aws_cloudwatch_log_group.functions["receipt"].arn}:log-stream:*"
        },
      ],
      var.tracing ? [{
        Sid      = "WriteReceiptTraces"
        Effect   = "Allow"
        Action   = ["xray:PutTraceSegments", "xray:PutTelemetryRecords"]
        Resource = "*" # as above
      }] : [],
    )
  })
}

# A separate policy, because queues, table and secrets depend on it: a role must be
# allowed to use a key before anything is encrypted with it. It includes the previous
# keys, because waiting messages and backups stay encrypted with them.
resource "aws_iam_role_policy" "keys" {
  for_each = { for name, services in local.key_services :
    name => services if contains(keys(local.functions), name) && length(local.kms_keys) > 0
  }

  name = "keys"
  role = aws_iam_role.functions[each.key].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "UseKMSKeys"
      Effect    = "Allow"
      Action    = ["kms:Decrypt", "kms:GenerateDataKey"]
      Resource  = local.kms_keys
      Condition = { StringEquals = { "kms:ViaService" = each.value } }
    }]
  })
}

# Without it, an apply would delete the policy of the order function after it has created
# the one of the same name.
moved {
  from = aws_iam_role_policy.keys[0]
  to   = aws_iam_role_policy.keys["order"]
}

# Queue policies. A statement has at most 7 actions (SQS developer guide, "Amazon SQS
# policy quotas"), so message_actions lists those that read, write or move messages.
# Denials name this account only: other accounts have no access without a statement that
# allows it.
locals {
  partition = data.aws_partition.current.partition
  account   = "arn:${local.partition}:iam::${data.aws_caller_identity.current.account_id}:root"

  kms_keys = sort(setunion(var.kms_key_arn == null ? [] : [var.kms_key_arn], var.previous_kms_key_arns))

  # Who may send orders. While it is empty, IAM policies of this account decide. Once it is
  # not, the intake function must be among them.
  sender_arns = setunion(var.producer_arns, var.producer_rule_arns, var.producer_topic_arns)
  producer_arns = concat(
    sort(var.producer_arns),
    [for name, role in aws_iam_role.functions : role.arn if name == "intake" && length(local.sender_arns) > 0],
  )

  # The services through which each function may use the keys.
  key_services = { for name, services in {
    order     = ["sqs", "dynamodb", "secretsmanager"]
    webhook   = ["dynamodb", "secretsmanager"]
    reconcile = ["dynamodb", "secretsmanager"]
    publish   = ["dynamodb", "sqs"]
    intake    = ["dynamodb", "sqs"]
    receipt   = ["dynamodb", "secretsmanager"]
    } : name => [for service in services :
    "${service}.${data.aws_region.current.region}.${data.aws_partition.current.dns_suffix}"
  ] }

  message_actions = [
    "sqs:SendMessage", "sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility",
    "sqs:GetQueueAttributes", "sqs:SetQueueAttributes", "sqs:PurgeQueue",
  ]
}

resource "aws_sqs_queue_policy" "orders" {
  queue_url = aws_sqs_queue.orders.url
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [{
        Sid       = "DenyOrdersWithoutTLS"
        Effect    = "Deny"
        Principal = { AWS = local.account }
        Action    = local.message_actions
        Resource  = aws_sqs_queue.orders.arn
        Condition = { Bool = { "aws:SecureTransport" = "false" } }
      }],
      [for statement in [{
        Sid       = "ProducersSendOrders"
        Effect    = "Allow"
        Principal = { AWS = local.producer_arns }
        Action    = "sqs:SendMessage"
        Resource  = aws_sqs_queue.orders.arn
        Condition = { Bool = { "aws:SecureTransport" = "true" } }
      }] : statement if length(local.producer_arns) > 0],
      # aws:SourceArn is compared in full and contains the account, so aws:SourceAccount
      # is not needed (IAM user guide, "The confused deputy problem").
      [for statement in [
        {
          Sid       = "RulesSendOrders"
          Effect    = "Allow"
          Principal = { Service = "events.amazonaws.com" }
          Action    = "sqs:SendMessage"
          Resource  = aws_sqs_queue.orders.arn
          Condition = {
            ArnEquals    = { "aws:SourceArn" = sort(var.producer_rule_arns) }
            BoolIfExists = { "aws:SecureTransport" = "true" }
          }
        },
        {
          Sid       = "TopicsSendOrders"
          Effect    = "Allow"
          Principal = { Service = "sns.amazonaws.com" }
          Action    = "sqs:SendMessage"
          Resource  = aws_sqs_queue.orders.arn
          Condition = {
            ArnEquals    = { "aws:SourceArn" = sort(var.producer_topic_arns) }
            BoolIfExists = { "aws:SecureTransport" = "true" }
          }
        },
      ] : statement if length(statement.Condition.ArnEquals["aws:SourceArn"]) > 0],
      # Requests of AWS services do not come from a principal of this account. The
      # condition also excludes them, so that the denial never blocks rules and topics.
      [for statement in [{
        Sid       = "DenyOtherSenders"
        Effect    = "Deny"
        Principal = { AWS = local.account }
        Action    = "sqs:SendMessage"
        Resource  = aws_sqs_queue.orders.arn
        Condition = { for operator, condition in {
          ArnNotEquals = { "aws:PrincipalArn" = local.producer_arns }
          Bool         = { "aws:PrincipalIsAWSService" = "false" }
        } : operator => condition if operator != "ArnNotEquals" || length(local.producer_arns) > 0 }
      }] : statement if length(local.sender_arns) > 0],
    )
  })
}

resource "aws_sqs_queue_policy" "dead_letters" {
  queue_url = aws_sqs_queue.dead_letters.url
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "DenyDeadLettersWithoutTLS"
        Effect    = "Deny"
        Principal = { AWS = local.account }
        Action    = local.message_actions
        Resource  = aws_sqs_queue.dead_letters.arn
        Condition = { Bool = { "aws:SecureTransport" = "false" } }
      },
      {
        Sid       = "DenyOtherDeadLetters"
        Effect    = "Deny"
        Principal = { AWS = local.account }
        Action    = "sqs:SendMessage"
        Resource  = aws_sqs_queue.dead_letters.arn
        Condition = { ArnNotEquals = { "aws:PrincipalArn" = aws_iam_role.functions["order"].arn } }
      },
    ]
  })
}

resource "aws_sqs_queue_policy" "unpublished" {
  queue_url = aws_sqs_queue.unpublished.url
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "DenyUnpublishedWithoutTLS"
        Effect    = "Deny"
        Principal = { AWS = local.account }
        Action    = local.message_actions
        Resource  = aws_sqs_queue.unpublished.arn
        Condition = { Bool = { "aws:SecureTransport" = "false" } }
      },
      {
        Sid       = "DenyOtherUnpublished"
        Effect    = "Deny"
        Principal = { AWS = local.account }
        Action    = "sqs:SendMessage"
        Resource  = aws_sqs_queue.unpublished.arn
        Condition = { ArnNotEquals = { "aws:PrincipalArn" = aws_iam_role.functions["publish"].arn } }
      },
    ]
  })
}
