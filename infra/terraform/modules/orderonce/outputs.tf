output "scope" {
  description = "Scope of this deployment in metrics, idempotency keys and PaymentIntents."
  value       = local.scope
}

output "order_queue_url" {
  description = "URL of the queue to which producers send orders."
  value       = aws_sqs_queue.queues["orders"].url
}

output "refund_queue_url" {
  description = "URL of the queue to which producers send refunds. Null without create_refund."
  value       = try(aws_sqs_queue.queues["refunds"].url, null)
}

output "queues" {
  description = "URL and ARN of each queue, by the end of its name, such as orders-dead."
  value = { for name, queue in merge(aws_sqs_queue.queues, aws_sqs_queue.dead_letters) :
    name => { url = queue.url, arn = queue.arn }
  }
}

output "tables" {
  description = "Name and ARN of each table, by what it has, such as orders."
  value = { for name, table in {
    orders   = aws_dynamodb_table.orders
    stock    = one(aws_dynamodb_table.stock)
    receipts = one(aws_dynamodb_table.receipts)
  } : name => { name = table.name, arn = table.arn } if table != null }
}

output "secrets" {
  description = "ARN of each secret, by what it has, such as stripe."
  value = { for name, secret in {
    stripe        = aws_secretsmanager_secret.stripe
    webhook       = one(aws_secretsmanager_secret.webhook)
    stripe_read   = one(aws_secretsmanager_secret.stripe_read)
    stripe_refund = one(aws_secretsmanager_secret.stripe_refund)
  } : name => secret.arn if secret != null }
}

output "apis" {
  description = "Id of each API by its name, for domain mappings and metrics."
  value       = { for api in concat(aws_apigatewayv2_api.webhook, aws_apigatewayv2_api.orders) : api.name => api.id }
}

output "orders_table" {
  description = "Name of the orders table."
  value       = aws_dynamodb_table.orders.name
}

output "orders_stream_arn" {
  description = "ARN of the orders table's stream."
  value       = aws_dynamodb_table.orders.stream_arn
}

output "webhook_url" {
  description = "URL for the webhook endpoint at Stripe. Null without create_webhook."
  value       = one([for api in aws_apigatewayv2_api.webhook : "${api.api_endpoint}/stripe/webhook"])
}

output "intake_url" {
  description = "URL of the orders by HTTP. Null without create_intake."
  value       = one([for api in aws_apigatewayv2_api.orders : "${api.api_endpoint}/orders"])
}

output "intake_caller_policy" {
  description = "IAM policy that a caller of intake_url needs. Null without create_intake, and with intake_jwt."
  value       = one(local.intake_caller_policies)
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

output "paid_queue_url" {
  description = "URL of the example subscriber's queue. Null without create_example_subscriber."
  value       = one([for rule in aws_cloudwatch_event_rule.paid : aws_sqs_queue.queues["paid"].url])
}

output "functions" {
  description = "Name, ARN of the alias live and ARN of the role of each function, by part."
  value = { for name, alias in aws_lambda_alias.live :
    name => { name = alias.function_name, alias = alias.arn, role = aws_iam_role.functions[name].arn }
  }
}

output "log_groups" {
  description = "Log group of each function, by part, and of the requests to each API."
  value = merge(
    { for name, group in aws_cloudwatch_log_group.functions : name => group.name },
    { for group in aws_cloudwatch_log_group.webhook_access : "webhook-access" => group.name },
    { for group in aws_cloudwatch_log_group.intake_access : "intake-access" => group.name },
  )
}

output "event_source_mapping_uuid" {
  description = "UUID of the event source mapping, for aws lambda update-event-source-mapping."
  value       = aws_lambda_event_source_mapping.queues["orders"].uuid
}

output "refund_event_source_mapping_uuid" {
  description = "The same of the refund queue. Null without create_refund."
  value       = try(aws_lambda_event_source_mapping.queues["refunds"].uuid, null)
}

output "dashboard" {
  description = "Name of the CloudWatch dashboard. Null without create_dashboard."
  value       = one(aws_cloudwatch_dashboard.orders[*].dashboard_name)
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
    [for api in aws_apigatewayv2_api.webhook : "export WEBHOOK_URL=${api.api_endpoint}/stripe/webhook"],
    [for api in aws_apigatewayv2_api.orders : "export INTAKE_URL=${api.api_endpoint}/orders" if var.intake_jwt == null],
    [""],
  ))
}
