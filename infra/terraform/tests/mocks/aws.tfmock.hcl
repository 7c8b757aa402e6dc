# Mocked values have the form that AWS gives them, because the provider parses ARNs and
# policies even in a test. OpenTofu has no mock_provider with a source, so infra/check.sh
# copies these blocks into the test files for it.

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
  defaults = {
    arn = "arn:aws:sqs:eu-west-1:123456789012:queue"
    url = "https://sqs.eu-west-1.amazonaws.com/123456789012/queue"
  }
}

mock_resource "aws_dynamodb_table" {
  defaults = {
    arn        = "arn:aws:dynamodb:eu-west-1:123456789012:table/table"
    stream_arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/table/stream/2026-01-01T00:00:00.000"
  }
}

mock_resource "aws_secretsmanager_secret" {
  defaults = {
    id  = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:secret-AbCdEf"
    arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:secret-AbCdEf"
  }
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
  defaults = {
    arn        = "arn:aws:lambda:eu-west-1:123456789012:function:function:live"
    invoke_arn = "arn:aws:apigateway:eu-west-1:lambda:path/2015-03-31/functions/live/invocations"
  }
}

mock_resource "aws_apigatewayv2_api" {
  defaults = {
    id            = "a1b2c3d4e5"
    api_endpoint  = "https://a1b2c3d4e5.execute-api.eu-west-1.amazonaws.com"
    execution_arn = "arn:aws:execute-api:eu-west-1:123456789012:a1b2c3d4e5"
  }
}

mock_resource "aws_lambda_event_source_mapping" {
  defaults = { uuid = "00000000-0000-4000-8000-000000000000" }
}

# What is not mocked is random. So a role that has permissions for the log group of another
# function fails its test.
override_resource {
  target = aws_cloudwatch_log_group.webhook_access
  values = { arn = "arn:aws:logs:eu-west-1:123456789012:log-group:webhook-access" }
}

override_resource {
  target = aws_cloudwatch_log_group.intake_access
  values = { arn = "arn:aws:logs:eu-west-1:123456789012:log-group:intake-access" }
}
