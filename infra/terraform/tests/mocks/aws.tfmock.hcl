# Shaped as AWS shapes them, because the provider parses ARNs and policies even in a test.

mock_data "aws_caller_identity" {
  defaults = {
    account_id = "123456789012"
  }
}

mock_data "aws_partition" {
  defaults = {
    partition  = "aws"
    dns_suffix = "amazonaws.com"
  }
}

mock_data "aws_region" {
  defaults = {
    region = "eu-west-1"
  }
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
  defaults = {
    arn = "arn:aws:iam::123456789012:role/role"
  }
}

mock_resource "aws_cloudwatch_log_group" {
  defaults = {
    arn = "arn:aws:logs:eu-west-1:123456789012:log-group:group"
  }
}

mock_resource "aws_lambda_function" {
  defaults = {
    arn     = "arn:aws:lambda:eu-west-1:123456789012:function:function"
    version = "7"
  }
}

mock_resource "aws_lambda_alias" {
  defaults = {
    arn = "arn:aws:lambda:eu-west-1:123456789012:function:function:live"
  }
}
