# Mocked values have the form that AWS gives them, because the provider parses ARNs and
# policies even in a test. OpenTofu has no mock_provider with a source, so infra/check.sh
# copies these blocks into the test files for it. It cannot override one instance of several
# either, so it does without instances.tfmock.hcl.

mock_data "aws_caller_identity" {
  defaults = { account_id = "123456789012" }
}

mock_data "aws_partition" {
  defaults = { partition = "aws", dns_suffix = "amazonaws.com" }
}

mock_data "aws_region" {
  defaults = { region = "eu-west-1" }
}

mock_resource "aws_sqs_queue" {
  defaults = { arn = "arn:aws:sqs:eu-west-1:123456789012:queue" }
}

mock_resource "aws_dynamodb_table" {
  defaults = {
    arn        = "arn:aws:dynamodb:eu-west-1:123456789012:table/table"
    stream_arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/table/stream/2026"
  }
}

mock_resource "aws_secretsmanager_secret" {
  defaults = { arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:secret-AbCdEf" }
}

mock_resource "aws_cloudwatch_log_group" {
  defaults = { arn = "arn:aws:logs:eu-west-1:123456789012:log-group:group" }
}

mock_resource "aws_iam_role" {
  defaults = { arn = "arn:aws:iam::123456789012:role/role" }
}

mock_resource "aws_cloudwatch_event_bus" {
  defaults = { arn = "arn:aws:events:eu-west-1:123456789012:event-bus/bus" }
}

mock_resource "aws_lambda_function" {
  defaults = { arn = "arn:aws:lambda:eu-west-1:123456789012:function:function", version = "7" }
}

mock_resource "aws_lambda_alias" {
  defaults = { arn = "arn:aws:lambda:eu-west-1:123456789012:function:function:live" }
}

mock_resource "aws_apigatewayv2_api" {
  defaults = {
    id            = "a1b2c3d4e5"
    api_endpoint  = "https://a1b2c3d4e5.execute-api.eu-west-1.amazonaws.com"
    execution_arn = "arn:aws:execute-api:eu-west-1:123456789012:a1b2c3d4e5"
  }
}

# Distinct values, so that a reference to another resource of the type fails. What is not mocked is
# random.
override_resource {
  target = aws_dynamodb_table.stock
  values = { arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/stock" }
}
override_resource {
  target = aws_dynamodb_table.receipts
  values = { arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/receipts" }
}
override_resource {
  target = aws_secretsmanager_secret.stripe
  values = { arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:writes-AbCdEf" }
}
override_resource {
  target = aws_secretsmanager_secret.stripe_read
  values = { arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:reads-AbCdEf" }
}
override_resource {
  target = aws_secretsmanager_secret.stripe_refund
  values = { arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:refunds-AbCdEf" }
}
override_resource {
  target = aws_secretsmanager_secret.webhook
  values = { arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:webhook-AbCdEf" }
}
override_resource {
  target = aws_iam_role.reconcile_schedule
  values = { id = "schedule", arn = "arn:aws:iam::123456789012:role/schedule" }
}
override_resource {
  target = aws_apigatewayv2_api.orders
  values = {
    id            = "orders"
    api_endpoint  = "https://orders.execute-api.eu-west-1.amazonaws.com"
    execution_arn = "arn:aws:execute-api:eu-west-1:123456789012:orders"
  }
}
override_resource {
  target = aws_apigatewayv2_authorizer.intake
  values = { id = "authorizer" }
}
override_resource {
  target = aws_cloudwatch_log_group.webhook_access
  values = { arn = "arn:aws:logs:eu-west-1:123456789012:log-group:webhook-access" }
}
override_resource {
  target = aws_cloudwatch_log_group.intake_access
  values = { arn = "arn:aws:logs:eu-west-1:123456789012:log-group:intake-access" }
}
override_resource {
  target = aws_iam_policy.operator_read
  values = { arn = "arn:aws:iam::123456789012:policy/read" }
}
override_resource {
  target = aws_iam_policy.operator_repair
  values = { arn = "arn:aws:iam::123456789012:policy/repair" }
}
override_resource {
  target = aws_cloudwatch_event_rule.paid
  values = { arn = "arn:aws:events:eu-west-1:123456789012:rule/paid" }
}
override_resource {
  target = aws_cloudwatch_event_archive.orders
  values = { arn = "arn:aws:events:eu-west-1:123456789012:archive/orders" }
}
