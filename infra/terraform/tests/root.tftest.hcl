# The thin root. The module's own tests are beside it.

mock_provider "aws" {
  source = "./modules/orderonce/tests/mocks"
}

variables {
  package_dir       = "modules/orderonce/tests/packages"
  stripe_secret_key = "sk_test_canary"
  alarm_topic_arn   = "arn:aws:sns:eu-west-1:123456789012:ops"
}

run "variables_reach_the_module_and_its_outputs_come_back" {
  command = plan

  variables {
    environment = "prod"
    scope       = "given"
  }

  assert {
    condition     = output.scope == "given" && output.orders_table == "orderonce-prod-orders"
    error_message = "outputs: got ${output.scope}, ${output.orders_table}"
  }
}

run "tags_of_the_root_itself_are_rejected" {
  command = plan

  variables {
    tags = { Environment = "prod" }
  }

  expect_failures = [var.tags]
}
