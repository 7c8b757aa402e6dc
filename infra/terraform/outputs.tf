output "scope" {
  description = "Scope of this deployment in metrics, idempotency keys and PaymentIntents."
  value       = local.scope
}

output "order_queue_url" {
  description = "URL of the queue to which producers send orders."
  value       = aws_sqs_queue.queues["orders"].url
}

output "order_queue_arn" {
  description = "ARN of the order queue, the destination of a redrive."
  value       = aws_sqs_queue.queues["orders"].arn
}

output "dead_letter_queue_url" {
  description = "URL of the queue with the parked messages."
  value       = aws_sqs_queue.dead_letters["orders-dead"].url
}

output "dead_letter_queue_arn" {
  description = "ARN of the dead-letter queue, the source of a redrive."
  value       = aws_sqs_queue.dead_letters["orders-dead"].arn
}

output "refund_queue_url" {
  description = "URL of the queue to which producers send refunds. Null without create_refund."
  value       = try(aws_sqs_queue.queues["refunds"].url, null)
}

output "refund_dead_letter_queue_url" {
  description = "URL of the queue with the parked refunds. Null without create_refund."
  value       = try(aws_sqs_queue.dead_letters["refunds-dead"].url, null)
}

output "orders_table" {
  description = "Name of the orders table."
  value       = aws_dynamodb_table.orders.name
}

output "orders_table_arn" {
  description = "ARN of the orders table."
  value       = aws_dynamodb_table.orders.arn
}

output "orders_stream_arn" {
  description = "ARN of the orders table's stream."
  value       = aws_dynamodb_table.orders.stream_arn
}

output "stripe_secret_arn" {
  description = "ARN of the secret with the Stripe key."
  value       = aws_secretsmanager_secret.stripe.arn
}

output "webhook_url" {
  description = "URL for the webhook endpoint at Stripe. Null without create_webhook."
  value       = one([for api in aws_apigatewayv2_api.webhook : "${api.api_endpoint}/stripe/webhook"])
}

output "webhook_api_id" {
  description = "Id of the API of webhook_url, for domain mappings and metrics. Null without create_webhook."
  value       = one(aws_apigatewayv2_api.webhook[*].id)
}

output "webhook_function_name" {
  description = "Name of the webhook function. Null without create_webhook."
  value       = var.create_webhook ? aws_lambda_function.functions["webhook"].function_name : null
}

output "webhook_log_group" {
  description = "Log group of the webhook function. Null without create_webhook."
  value       = var.create_webhook ? aws_cloudwatch_log_group.functions["webhook"].name : null
}

output "webhook_access_log_group" {
  description = "Log group of the requests to webhook_url. Null without create_webhook."
  value       = one(aws_cloudwatch_log_group.webhook_access[*].name)
}

output "webhook_secret_arn" {
  description = "ARN of the secret with the webhook's signing secret. Null without create_webhook."
  value       = one(aws_secretsmanager_secret.webhook[*].arn)
}

output "intake_url" {
  description = "URL of the orders by HTTP. Null without create_intake."
  value       = one([for api in aws_apigatewayv2_api.orders : "${api.api_endpoint}/orders"])
}

output "intake_api_id" {
  description = "Id of the API of intake_url, for domain mappings and metrics. Null without create_intake."
  value       = one(aws_apigatewayv2_api.orders[*].id)
}

output "intake_caller_policy" {
  description = "IAM policy that a caller of intake_url needs. Null without create_intake, and with intake_jwt."
  value       = one(local.intake_caller_policies)
}

output "intake_access_log_group" {
  description = "Log group of the requests to intake_url. Null without create_intake."
  value       = one(aws_cloudwatch_log_group.intake_access[*].name)
}

output "stock_table" {
  description = "Name of the stock table. Null without stock_tracking."
  value       = one(aws_dynamodb_table.stock[*].name)
}

output "receipts_table" {
  description = "Name of the receipts table. Null without create_receipts."
  value       = one(aws_dynamodb_table.receipts[*].name)
}

output "receipt_queue_url" {
  description = "URL of the queue of the receipt function. Null without create_receipts."
  value       = try(aws_sqs_queue.queues["receipts"].url, null)
}

output "receipt_dead_letter_queue_url" {
  description = "URL of the queue with its parked messages. Null without create_receipts."
  value       = try(aws_sqs_queue.dead_letters["receipts-dead"].url, null)
}

output "reconcile_function_name" {
  description = "Name of the reconcile function."
  value       = aws_lambda_function.functions["reconcile"].function_name
}

output "reconcile_log_group" {
  description = "Log group of the reconcile function."
  value       = aws_cloudwatch_log_group.functions["reconcile"].name
}

output "event_bus_name" {
  description = "Name of the event bus with the order events."
  value       = aws_cloudwatch_event_bus.orders.name
}

output "event_bus_arn" {
  description = "ARN of the event bus, the source and the destination of a replay."
  value       = aws_cloudwatch_event_bus.orders.arn
}

output "event_archive_arn" {
  description = "ARN of the archive of order events."
  value       = aws_cloudwatch_event_archive.orders.arn
}

output "event_source" {
  description = "Source of the order events, for the patterns of rules."
  value       = local.event_source
}

output "publish_function_name" {
  description = "Name of the publish function."
  value       = aws_lambda_function.functions["publish"].function_name
}

output "publish_log_group" {
  description = "Log group of the publish function."
  value       = aws_cloudwatch_log_group.functions["publish"].name
}

output "unpublished_queue_url" {
  description = "URL of the queue with the positions of records that were not published."
  value       = aws_sqs_queue.dead_letters["unpublished"].url
}

output "paid_queue_url" {
  description = "URL of the example subscriber's queue. Null without create_example_subscriber."
  value       = try(aws_sqs_queue.queues["paid"].url, null)
}

output "function_aliases" {
  description = "ARN of the alias live of each function, by function name."
  value       = { for name, alias in aws_lambda_alias.live : name => alias.arn }
}

output "function_role_arns" {
  description = "ARN of the role of each function, by function name."
  value       = { for name, role in aws_iam_role.functions : name => role.arn }
}

output "log_groups" {
  description = "Log group of each function, by function name."
  value       = { for name, group in aws_cloudwatch_log_group.functions : name => group.name }
}

output "event_source_mapping_uuid" {
  description = "UUID of the event source mapping, for aws lambda update-event-source-mapping."
  value       = aws_lambda_event_source_mapping.queues["orders"].uuid
}

output "dashboard" {
  description = "Name of the CloudWatch dashboard."
  value       = aws_cloudwatch_dashboard.orders.dashboard_name
}

output "operator_read_policy_arn" {
  description = "ARN of the policy of an operator who reads. Null without create_operator_policies."
  value       = one(aws_iam_policy.operator_read[*].arn)
}

output "operator_repair_policy_arn" {
  description = "ARN of the policy of an operator who repairs. Null without create_operator_policies."
  value       = one(aws_iam_policy.operator_repair[*].arn)
}

output "operator_environment" {
  description = "Shell lines for scripts/orders."
  value = join("\n", concat([
    "export AWS_REGION=${data.aws_region.current.region}",
    "export ORDERS_TABLE=${aws_dynamodb_table.orders.name}",
    "export QUEUE_URL=${aws_sqs_queue.queues["orders"].url}",
    "export DEAD_LETTER_QUEUE_URL=${aws_sqs_queue.dead_letters["orders-dead"].url}",
    "export EVENT_BUS=${aws_cloudwatch_event_bus.orders.name}",
    "export SCOPE=${local.scope}",
    ],
    !var.create_refund ? [] : [
      "export REFUND_QUEUE_URL=${aws_sqs_queue.queues["refunds"].url}",
      "export REFUND_DEAD_LETTER_QUEUE_URL=${aws_sqs_queue.dead_letters["refunds-dead"].url}",
    ],
    [for table in aws_dynamodb_table.stock : "export STOCK_TABLE=${table.name}"],
    [for table in aws_dynamodb_table.receipts : "export RECEIPTS_TABLE=${table.name}"],
    [""],
  ))
}
