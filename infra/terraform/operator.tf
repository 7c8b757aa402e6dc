# IAM policies for people who use scripts/orders. Attach one of them to a role, or name it in
# a permission set of IAM Identity Center. docs/reference/iam.md explains each statement.
#
# Neither policy allows reading a secret: a person uses a Stripe key of their own.

resource "aws_iam_policy" "operator_read" {
  count = var.create_operator_policies ? 1 : 0

  name        = "${local.prefix}-operator-read"
  description = "Read the orders and dead letters of ${local.prefix} with scripts/orders"
  policy = jsonencode({
    Version   = "2012-10-17"
    Statement = local.operator_reads
  })
}

resource "aws_iam_policy" "operator_repair" {
  count = var.create_operator_policies ? 1 : 0

  name        = "${local.prefix}-operator-repair"
  description = "Read and repair the orders and dead letters of ${local.prefix} with scripts/orders"
  policy = jsonencode({
    Version   = "2012-10-17"
    Statement = concat(local.operator_reads, local.operator_repairs)
  })
}

locals {
  # show, list, watch, dead-letters list and show, audit, stock, receipts.
  operator_reads = concat(
    [
      {
        Sid    = "ReadOrders"
        Effect = "Allow"
        Action = [
          "dynamodb:GetItem", "dynamodb:Query", "dynamodb:Scan", "dynamodb:DescribeTable",
        ]
        Resource = aws_dynamodb_table.orders.arn
      },
      {
        Sid      = "FindWaitingOrders"
        Effect   = "Allow"
        Action   = "dynamodb:Query"
        Resource = "${aws_dynamodb_table.orders.arn}/index/open"
      },
      {
        Sid      = "CountOrderMessages"
        Effect   = "Allow"
        Action   = "sqs:GetQueueAttributes"
        Resource = aws_sqs_queue.orders.arn
      },
      {
        Sid    = "ReadDeadLetters"
        Effect = "Allow"
        Action = [
          "sqs:ReceiveMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes",
        ]
        Resource = aws_sqs_queue.dead_letters.arn
      },
    ],
    [for statement in [{
      Sid       = "DecryptOrders"
      Effect    = "Allow"
      Action    = "kms:Decrypt"
      Resource  = local.kms_keys
      Condition = { StringEquals = { "kms:ViaService" = values(local.operator_services) } }
    }] : statement if length(local.kms_keys) > 0],
    [for table in aws_dynamodb_table.stock : {
      Sid      = "ReadStock"
      Effect   = "Allow"
      Action   = "dynamodb:GetItem"
      Resource = table.arn
    }],
    [for table in aws_dynamodb_table.receipts : {
      Sid      = "ReadReceipts"
      Effect   = "Allow"
      Action   = ["dynamodb:GetItem", "dynamodb:Query"]
      Resource = [table.arn, "${table.arn}/index/doubtful"]
    }],
  )

  # refresh, restore, cancel, refund, refund resolve, republish, post, dead-letters redrive and
  # discard, audit --repair, stock --add, receipts resolve.
  operator_repairs = concat(
    [
      {
        Sid      = "RepairOrders"
        Effect   = "Allow"
        Action   = ["dynamodb:UpdateItem", "dynamodb:PutItem"]
        Resource = aws_dynamodb_table.orders.arn
      },
      {
        Sid      = "SendOrders"
        Effect   = "Allow"
        Action   = "sqs:SendMessage"
        Resource = aws_sqs_queue.orders.arn
      },
      {
        Sid      = "DeleteDeadLetters"
        Effect   = "Allow"
        Action   = "sqs:DeleteMessage"
        Resource = aws_sqs_queue.dead_letters.arn
      },
      {
        Sid      = "RepublishEvents"
        Effect   = "Allow"
        Action   = "events:PutEvents"
        Resource = aws_cloudwatch_event_bus.orders.arn
      },
    ],
    [for statement in [{
      Sid       = "EncryptOrders"
      Effect    = "Allow"
      Action    = "kms:GenerateDataKey"
      Resource  = var.kms_key_arn # nothing is sent with a previous one
      Condition = { StringEquals = { "kms:ViaService" = local.operator_services["sqs"] } }
    }] : statement if var.kms_key_arn != null],
    local.stock_statements, # also to add goods
    [for table in aws_dynamodb_table.receipts : {
      Sid      = "ResolveReceipts"
      Effect   = "Allow"
      Action   = "dynamodb:PutItem"
      Resource = table.arn
    }],
  )

  # The services through which a person may use the keys.
  operator_services = { for service in ["dynamodb", "sqs"] :
    service => "${service}.${data.aws_region.current.region}.${data.aws_partition.current.dns_suffix}"
  }
}
