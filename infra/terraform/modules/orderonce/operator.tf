# IAM policies for people who use scripts/orders. Attach one of them to a role, or name it in
# a permission set of IAM Identity Center. docs/reference/iam.md explains each statement.
#
# Neither policy allows reading a secret: a person uses a Stripe key of their own.

resource "aws_iam_policy" "operator_read" {
  count = var.create_operator_policies ? 1 : 0

  name        = "${local.prefix}-operator-read"
  description = "Read the orders and dead letters of ${local.prefix} with scripts/orders"
  policy      = local.operator_policies.read
}

resource "aws_iam_policy" "operator_repair" {
  count = var.create_operator_policies ? 1 : 0

  name        = "${local.prefix}-operator-repair"
  description = "Read and repair the orders and dead letters of ${local.prefix} with scripts/orders"
  policy      = local.operator_policies.repair
}

locals {
  operator_policies = { for name, statements in {
    read   = local.operator_reads
    repair = merge(local.operator_reads, local.operator_repairs)
    } : name => jsonencode({
      Version   = "2012-10-17"
      Statement = [for sid, statement in statements : merge({ Sid = sid, Effect = "Allow" }, statement)]
  }) }

  # The queues of orders and of refunds.
  produced_arns = [for name in local.produced : aws_sqs_queue.queues[name].arn]
  parked_arns   = [for name in local.produced : aws_sqs_queue.dead_letters["${name}-dead"].arn]

  # show, list, watch, dead-letters list and show, audit, stock, receipts.
  operator_reads = merge(
    {
      ReadOrders = {
        Action   = ["dynamodb:GetItem", "dynamodb:Query", "dynamodb:Scan", "dynamodb:DescribeTable"]
        Resource = aws_dynamodb_table.orders.arn
      }
      FindWaitingOrders = {
        Action   = "dynamodb:Query"
        Resource = "${aws_dynamodb_table.orders.arn}/index/open"
      }
      CountMessages = {
        Action   = "sqs:GetQueueAttributes"
        Resource = local.produced_arns
      }
      ReadDeadLetters = {
        Action   = ["sqs:ReceiveMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes"]
        Resource = local.parked_arns
      }
    },
    { for keys in [local.kms_keys] : "DecryptOrders" => {
      Action    = "kms:Decrypt"
      Resource  = keys
      Condition = { StringEquals = { "kms:ViaService" = [local.services.dynamodb, local.services.sqs] } }
    } if length(keys) > 0 },
    { for table in aws_dynamodb_table.stock : "ReadStock" => {
      Action   = "dynamodb:GetItem"
      Resource = table.arn
    } },
    { for table in aws_dynamodb_table.receipts : "ReadReceipts" => {
      Action   = ["dynamodb:GetItem", "dynamodb:Query"]
      Resource = [table.arn, "${table.arn}/index/doubtful"]
    } },
  )

  # refresh, restore, cancel, refund, refund resolve, republish, post, dead-letters redrive and
  # discard, audit --repair, stock --add, receipts resolve and again, erase.
  operator_repairs = merge(
    {
      RepairOrders = {
        Action   = ["dynamodb:UpdateItem", "dynamodb:PutItem"]
        Resource = aws_dynamodb_table.orders.arn
      }
      SendMessages = { Action = "sqs:SendMessage", Resource = local.produced_arns }
      DeleteDeadLetters = {
        Action   = "sqs:DeleteMessage"
        Resource = local.parked_arns
      }
      RepublishEvents = { Action = "events:PutEvents", Resource = aws_cloudwatch_event_bus.orders.arn }
    },
    { for key in [var.kms_key_arn] : "EncryptOrders" => {
      Action    = "kms:GenerateDataKey"
      Resource  = key # nothing is sent with a previous one
      Condition = { StringEquals = { "kms:ViaService" = local.services.sqs } }
    } if key != null },
    local.stock_statements, # also to add stock
    { for table in aws_dynamodb_table.receipts : "ResolveReceipts" => {
      Action   = "dynamodb:PutItem"
      Resource = table.arn
    } },
  )
}
