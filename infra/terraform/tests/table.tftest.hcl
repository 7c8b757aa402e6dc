# Mocked values have the form that AWS gives them, because the provider parses ARNs and
# policies even in a test. The mocks are repeated in each file, because OpenTofu has no
# mock_provider that reads them from a folder.
mock_provider "aws" {
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

  mock_resource "aws_cloudwatch_log_group" {
    defaults = { arn = "arn:aws:logs:eu-west-1:123456789012:log-group:group" }
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
}

variables {
  package_dir       = "tests/packages"
  stripe_secret_key = "sk_test_canary"
  webhook_secret    = "whsec_canary"
}

run "the_table_is_protected_against_deletion" {
  command = plan

  assert {
    condition     = aws_dynamodb_table.orders.deletion_protection_enabled
    error_message = "deletion_protection_enabled: must be on, the rows prevent duplicate charges"
  }
}

run "point_in_time_recovery_is_on" {
  command = plan

  assert {
    condition     = aws_dynamodb_table.orders.point_in_time_recovery[0].enabled
    error_message = "point_in_time_recovery: must be on"
  }
}

run "only_event_rows_expire" {
  command = plan

  assert {
    condition = (
      aws_dynamodb_table.orders.ttl[0].enabled
      && aws_dynamodb_table.orders.ttl[0].attribute_name == "expiresAt"
    )
    error_message = "ttl: must be expiresAt, which only event rows have"
  }
}

run "the_stream_has_new_images" {
  command = plan

  assert {
    condition = (
      aws_dynamodb_table.orders.stream_enabled && aws_dynamodb_table.orders.stream_view_type == "NEW_IMAGE"
    )
    error_message = "stream_view_type: must be NEW_IMAGE"
  }
}

run "the_index_has_orders_that_are_not_settled" {
  command = plan

  assert {
    condition = [for index in aws_dynamodb_table.orders.global_secondary_index : {
      name = index.name, projection = index.projection_type, keys = [for key in index.key_schema :
      "${key.attribute_name} ${key.key_type}"]
    }] == [{ name = "open", projection = "KEYS_ONLY", keys = ["openShard HASH", "dueAt RANGE"] }]
    error_message = "indexes: must be open alone, with openShard and dueAt, keys only"
  }
}

run "the_table_is_billed_on_demand" {
  command = plan

  assert {
    condition     = aws_dynamodb_table.orders.billing_mode == "PAY_PER_REQUEST"
    error_message = "billing_mode: must be PAY_PER_REQUEST"
  }
}

run "a_new_table_gets_the_warm_throughput" {
  command = plan

  variables {
    warm_throughput = { read = 12000, write = 8000 }
  }

  assert {
    condition = (
      aws_dynamodb_table.orders.warm_throughput[0].write_units_per_second == 8000
      && aws_dynamodb_table.orders.warm_throughput[0].read_units_per_second == 12000
    )
    error_message = "warm_throughput: ignored"
  }
}

run "deployed" {
  variables {
    warm_throughput = { read = 12000, write = 8000 }
  }
}

run "warm_throughput_never_replaces_a_table" {
  command = plan

  variables {
    warm_throughput = { read = 12000, write = 4000 }
  }

  assert {
    condition     = aws_dynamodb_table.orders.warm_throughput[0].write_units_per_second == 8000
    error_message = "warm_throughput: lowering it would replace the table"
  }
}
